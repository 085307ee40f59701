/**
 * What Node adds to the platform: async context, the key that the user data folder keeps, timers that keep no process
 * alive, and the end of the process. Importing it fills them in. Nothing here changes how a host ends: there is no
 * listener for a signal or an exception.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHmac } from 'node:crypto';
import process from 'node:process';
import { keptKey } from './key.js';
import { platform } from './platform.js';

/** @type {Set<{idle: () => void, last: () => void}>} */
const atExit = new Set();
let listens = false;

/** @param {{idle: () => void, last: () => void}} at */
function onExit(at) {
  if (!listens) {
    listens = true; // one listener of each kind, however many sinks there are
    process.on('beforeExit', () => atExit.forEach(({ idle }) => idle()));
    process.on('exit', () => atExit.forEach(({ last }) => last()));
  }
  atExit.add(at);
  return () => void atExit.delete(at);
}

/** @param {number} ms @param {() => void} run */
function every(ms, run) {
  const timer = setInterval(run, ms).unref();
  return () => clearInterval(timer);
}

platform.storage = AsyncLocalStorage;
platform.personalKey = keptKey;
platform.hmac = (key, text) => createHmac('sha256', key).update(text).digest('hex');
platform.detached = AsyncLocalStorage.snapshot();
platform.every = every;
platform.onExit = onExit;
