/**
 * Records as lines of a file: by default one file for each process in the spool, from where `stopcause` takes them in.
 *
 * A line counts as delivered once `fdatasync` has said so. Node only.
 */
import { randomBytes } from 'node:crypto';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { spoolFolder } from './folders.js';
import { LineFile } from './line-file.js';
import { fillIn } from './node-platform.js';
import { Outbox } from './outbox.js';
import { codeOf, complain } from './platform.js';
import { sinkOf } from './sinks.js';

/**
 * @typedef {import('./outbox.js').Sink} Sink
 * @typedef {import('./outbox.js').Limits} Limits
 * @typedef {{key: string, path: string, isOurs: boolean}} Place
 * @typedef {{outbox: Outbox, users: number}} Shared
 */

/** @type {Map<string, Shared>} */
const open = new Map();

/**
 * A sink that appends to a file. Folders that are missing are made. Two sinks on one path in a process share it.
 *
 * A write that fails is tried again, later each time. What waits when the process ends is written then, also after
 * `process.exit()` and an exception that nobody caught. A signal that ends the process takes what was accepted in the
 * last moment with it: a few milliseconds, as long as the disk keeps up.
 * @param {string | URL} [path]  Default: a file of this process's own in the spool (`STOPCAUSE_SPOOL`).
 * @param {Limits} [limits]  Those of the first sink on a path hold.
 * @returns {Sink}
 */
export function fileSink(path, limits) {
  fillIn();
  const place = placeOf(path);
  const key = place?.key ?? '';
  const shared = open.get(key) ?? { outbox: outboxOn(place, limits), users: 0 };
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

/** @param {string | URL | undefined} path @returns {Place | undefined} Nothing: there is none, which is said. */
function placeOf(path) {
  try {
    return path === undefined ? ownFile(spoolFolder()) : namedFile(path);
  } catch (error) {
    complain(`fileSink has no file (${codeOf(error)}): name one, or set STOPCAUSE_SPOOL. Until then records are lost.`);
    return undefined;
  }
}

/** @param {string} folder @returns {Place} */
function ownFile(folder) {
  const name = `ai-sdk-${process.pid}-${randomBytes(4).toString('hex')}.ndjson`;
  return { key: `${folder}/`, path: join(folder, name), isOurs: true };
}

/** @param {string | URL} named @returns {Place} */
function namedFile(named) {
  const path = resolve(named instanceof URL ? fileURLToPath(named) : named);
  return { key: path, path, isOurs: false };
}

/** @param {Place | undefined} place @param {Limits} [limits] */
function outboxOn(place, limits) {
  const name = 'fileSink';
  if (!place) return new Outbox({ name, deliver: () => ({ rest: 'give_up' }) });
  const file = new LineFile(place.path, place.isOurs);
  return new Outbox({
    name,
    deliver: (lines) => file.append(lines),
    deliverAtEnd: (lines) => file.appendAtOnce(lines),
    onClosed: () => file.close(),
    ...limits,
  });
}

/** @param {() => Promise<void>} run */
function once(run) {
  /** @type {Promise<void> | undefined} */
  let first;
  return () => {
    first ??= run();
    return first;
  };
}
