/** The key that the user data folder keeps, made and read as `stopcause/receipts/pseudonyms.py` does it. */
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { dataFolder } from './folders.js';
import { codeOf, complain } from './platform.js';

/** @type {Uint8Array | undefined} */
let kept;

/**
 * @returns {Uint8Array | undefined} 32 random bytes, made once in this user's data folder; nothing where they cannot
 *   be kept, which is said once.
 */
export function keptKey() {
  try {
    kept ??= readOrMake(join(dataFolder(), 'hmac.key'));
  } catch (error) {
    complain(`the key of personal values cannot be kept (${codeOf(error)}): set STOPCAUSE_HMAC_KEY or STOPCAUSE_DATA.`);
  }
  return kept;
}

/** @param {string} path */
function readOrMake(path) {
  const key = read(path) ?? make(path);
  if (key.length) return key;
  throw Object.assign(new Error(), { code: 'EMPTY' }); // a hash with an empty key is one that anybody can guess
}

/** @param {string} path */
function read(path) {
  try {
    return readFileSync(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Made beside and linked into place, so that of two processes that start at once both end up with one key.
 * @param {string} path */
function make(path) {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${randomBytes(8).toString('hex')}`;
  writeDraft(draft);
  try {
    linkSync(draft, path);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error; // else another process was first: its key is the key
  } finally {
    unlinkSync(draft);
  }
  return readFileSync(path);
}

/** @param {string} draft */
function writeDraft(draft) {
  const handle = openSync(draft, 'wx', 0o600);
  try {
    writeSync(handle, randomBytes(32));
    fsyncSync(handle); // a key that a crash empties would leave hashes that anybody can guess
  } finally {
    closeSync(handle);
  }
}
