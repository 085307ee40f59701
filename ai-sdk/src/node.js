/**
 * The door for Node: all of `index.js`, and what needs a disk, a process or async context. Where nobody names a sink,
 * records go into the spool.
 */
import './node-platform.js';
import { fileSink } from './file-sink.js';
import { platform } from './platform.js';

platform.defaultSink = () => fileSink();

export * from './index.js';
export { fileSink };
