/**
 * The door for Node: all of `index.js`, and what needs a disk, a process or async context. Where nobody names a sink,
 * records go into the spool.
 */
import { fileSink } from './file-sink.js';
import { fillIn } from './node-platform.js';
import { platform } from './platform.js';

fillIn();
platform.defaultSink = () => fileSink();

export * from './index.js';
export { fileSink };
