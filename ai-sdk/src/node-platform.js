/**
 * What Node adds to the platform: async context, the key that the user data folder keeps, timers that keep no process
 * alive, the end of the process, and which SDK is installed. Nothing here changes how a host ends: there is no
 * listener for a signal or an exception.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHmac } from 'node:crypto';
import { createRequire } from 'node:module';
import process from 'node:process';
import { keptKey } from './key.js';
import { platform } from './platform.js';

/** @type {Set<{idle: () => void, last: () => void}>} */
const atExit = new Set();
let listens = false;
const FIRST_CHEAP = 24; // the first Node whose async context does not hang on hooks of every promise
const detached = AsyncLocalStorage.snapshot(); // the context of loading, which is nobody's

/** @param {{idle: () => void, last: () => void}} at */
function onExit(at) {
  if (!listens) {
    listens = true; // one listener of each kind, however many sinks there are
    process.on('beforeExit', () => {
      for (const each of atExit) each.idle();
    });
    process.on('exit', () => {
      for (const each of [...atExit].reverse()) each.last(); // what came last may still give to what was there before
    });
  }
  atExit.add(at);
  return () => void atExit.delete(at);
}

/** @param {number} ms @param {() => void} run */
function every(ms, run) {
  const timer = setInterval(run, ms).unref();
  return () => clearInterval(timer);
}

/** Of the SDK that is installed beside the hook; an application may hand over another one. */
function sdkVersion() {
  try {
    return createRequire(import.meta.url)('ai/package.json').version;
  } catch {
    return undefined; // bundled: nobody knows
  }
}

/** Called, not run by an import: a bundler may drop a module that only has effects. */
export function fillIn() {
  Object.assign(platform, {
    storage: AsyncLocalStorage,
    isContextCheap: Number(process.versions.node.split('.')[0]) >= FIRST_CHEAP,
    personalKey: keptKey,
    hmac: (/** @type {Uint8Array} */ key, /** @type {string} */ text) =>
      createHmac('sha256', key).update(text).digest('hex'),
    detached,
    every,
    onExit,
    sdkVersion,
  });
}
