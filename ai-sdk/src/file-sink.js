/**
 * Records as lines of a file: by default one file for each process in the spool, from where `stopcause` takes them in.
 *
 * A line counts as delivered once `fdatasync` has said so. Node only.
 */
import { randomBytes } from 'node:crypto';
import { join, resolve } from 'node:path';
import process from 'node:process';
import './node-platform.js';
import { LineFile } from './line-file.js';
import { spoolFolder } from './folders.js';
import { Outbox } from './outbox.js';
import { sinkOf } from './sinks.js';

/**
 * @typedef {import('./outbox.js').Sink} Sink
 * @typedef {{outbox: Outbox, users: number}} Shared
 */

const SPOOL_KEY = '';
/** @type {Map<string, Shared>} */
const open = new Map();

/**
 * A sink that appends to a file. Folders that are missing are made. Two sinks on one path in a process share it.
 *
 * A write that fails is tried again, later each time. What waits when the process ends is written then, also after
 * `process.exit()` and an exception that nobody caught. A signal that ends the process takes what was accepted in the
 * last moment with it: a few milliseconds, as long as the disk keeps up.
 * @param {string} [path]  Default: a file of this process's own in the spool (`STOPCAUSE_SPOOL`).
 * @param {import('./outbox.js').Limits} [limits]  Of the first sink on this path.
 * @returns {Sink}
 */
export function fileSink(path, limits) {
  const key = path === undefined ? SPOOL_KEY : resolve(path);
  const shared = open.get(key) ?? { outbox: outboxOn(key, limits), users: 0 };
  shared.users += 1;
  open.set(key, shared);
  return { ...sinkOf(shared.outbox), close: once(() => leave(key, shared)) };
}

/** @param {string} key @param {Shared} shared */
async function leave(key, shared) {
  shared.users -= 1;
  if (shared.users) return shared.outbox.flush();
  open.delete(key);
  return shared.outbox.close();
}

/** @param {string} key @param {import('./outbox.js').Limits} [limits] */
function outboxOn(key, limits) {
  const file = new LineFile(key === SPOOL_KEY ? ownFile : () => ({ path: key, isOurs: false }));
  return new Outbox({
    name: 'fileSink',
    deliver: (lines) => file.append(lines),
    deliverAtEnd: (lines) => file.appendAtOnce(lines),
    onClosed: () => file.close(),
    ...limits,
  });
}

/** @throws {Error} No home folder. */
function ownFile() {
  const name = `ai-sdk-${process.pid}-${randomBytes(4).toString('hex')}.ndjson`;
  return { path: join(spoolFolder(), name), isOurs: true };
}

/** @param {() => Promise<void>} run */
function once(run) {
  /** @type {Promise<void> | undefined} */
  let first;
  return () => (first ??= run());
}
