/**
 * A file that grows by whole lines, also where writes fail, the folder goes away, or another process has torn a line.
 * Node only; knows nothing of records.
 */
import { closeSync, fdatasyncSync, fstatSync, mkdirSync, openSync, readSync, writeSync } from 'node:fs';
import { mkdir, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf } from './platform.js';

/**
 * @typedef {import('./outbox.js').Answer} Answer
 * @typedef {import('node:fs/promises').FileHandle} FileHandle
 */

const LINE_FEED = 0x0a;
const PRIVATE_FOLDER = 0o700;
const PRIVATE_FILE = 0o600;
const NOTHING_TO_SYNC = new Set(['EINVAL', 'ENOTSUP']); // a pipe, a device

/** One path, opened when the first line comes. */
export class LineFile {
  #path;
  #isOurs;
  /** @type {FileHandle | undefined} */
  #handle;
  #isTorn = false; // the file ends inside a line
  #isWriting = false;

  /**
   * @param {string} path
   * @param {boolean} isOurs  In a folder of ours, which only this user reads.
   */
  constructor(path, isOurs) {
    this.#path = path;
    this.#isOurs = isOurs;
  }

  /**
   * Append lines and make them durable.
   * @param {string[]} lines
   * @returns {Promise<Answer | undefined>} Nothing: all are there. Else how many are, and why no more.
   */
  async append(lines) {
    if (this.#isWriting) return { rest: 'retry', why: 'EBUSY' }; // one that hangs must not fill Node's few I/O threads
    this.#isWriting = true;
    try {
      this.#handle ??= await this.#open();
      const { written, error } = await this.#write(this.#handle, bytesOf(lines, this.#isTorn));
      if (!error) return await this.#stillThere(this.#handle);
      await this.close();
      return { rest: 'retry', done: written, why: codeOf(error) };
    } finally {
      this.#isWriting = false;
    }
  }

  /**
   * The same at once, for the end of the process. Lines that a write in flight also appends are there twice then, with
   * the same ids.
   * @param {string[]} lines
   * @throws {Error} The system's.
   */
  appendAtOnce(lines) {
    if (!lines.length) return;
    mkdirSync(dirname(this.#path), this.#folderOptions());
    const handle = openSync(this.#path, 'a+', this.#isOurs ? PRIVATE_FILE : undefined);
    try {
      const bytes = bytesOf(lines, endsInsideLine(handle));
      for (let at = 0; at < bytes.length; ) at += writeSync(handle, bytes, at);
      fdatasyncSync(handle);
    } finally {
      closeSync(handle);
    }
  }

  /** Give the file back. */
  async close() {
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close();
  }

  #folderOptions() {
    return { recursive: true, mode: this.#isOurs ? PRIVATE_FOLDER : undefined };
  }

  async #open() {
    await mkdir(dirname(this.#path), this.#folderOptions());
    const handle = await open(this.#path, 'a+', this.#isOurs ? PRIVATE_FILE : undefined);
    this.#isTorn = endsInsideLine(handle.fd);
    return handle;
  }

  /**
   * @param {FileHandle} handle @param {Buffer} bytes
   * @returns {Promise<{written: number, error?: unknown}>} How many lines are whole in the file, where it went wrong.
   */
  async #write(handle, bytes) {
    const start = this.#isTorn ? 1 : 0;
    let at = 0;
    try {
      while (at < bytes.length) at += (await handle.write(bytes, at)).bytesWritten;
      this.#isTorn = false;
    } catch (error) {
      return { written: lineFeeds(bytes.subarray(start, at)), error };
    }
    const error = await notDurable(handle);
    return { written: 0, error };
  }

  /** Whether what was just written is where the path leads. @param {FileHandle} handle @returns {Promise<Answer | undefined>} */
  async #stillThere(handle) {
    const [own, there] = await Promise.all([handle.stat(), stat(this.#path).catch(() => undefined)]);
    if (there && there.ino === own.ino && there.dev === own.dev) return undefined;
    await this.close(); // somebody took it away: the next lines go into a new file
    return own.nlink ? undefined : { rest: 'retry', why: 'ENOENT' };
  }
}

/** @param {FileHandle} handle @returns {Promise<unknown>} The error, if there is one that counts. */
async function notDurable(handle) {
  try {
    await handle.datasync();
    return undefined;
  } catch (error) {
    return NOTHING_TO_SYNC.has(codeOf(error)) ? undefined : error;
  }
}

/** @param {number} handle  At once: it is a byte, read when a file is opened. */
function endsInsideLine(handle) {
  const { size } = fstatSync(handle);
  const last = Buffer.of(LINE_FEED);
  if (size) readSync(handle, last, 0, 1, size - 1);
  return last[0] !== LINE_FEED;
}

/** @param {string[]} lines @param {boolean} isTorn  What stands there already gets its line feed first. */
function bytesOf(lines, isTorn) {
  return Buffer.from(`${isTorn ? '\n' : ''}${lines.join('\n')}\n`);
}

/** @param {Uint8Array} bytes */
function lineFeeds(bytes) {
  return bytes.reduce((sum, byte) => sum + Number(byte === LINE_FEED), 0);
}
