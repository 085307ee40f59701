/**
 * What the hook needs from the place that it runs in, in one object that may be filled in.
 *
 * Here are the defaults that hold everywhere, also where there is no Node: importing the Node door fills in the rest
 * (`node-platform.js`). The core reads only this object, so nothing below `index.js` imports from Node.
 */

/**
 * @typedef {object} Platform
 * @property {(name: string) => string | undefined} env  A setting of the environment; an empty one counts as not set.
 * @property {(new () => any) | undefined} storage  The class AsyncLocalStorage, or nothing.
 * @property {boolean} isContextCheap  Whether that costs a process nothing worth a word.
 * @property {(() => Uint8Array | undefined) | undefined} personalKey  The key of the hashes that replace personal
 *   values, where the environment names none. Never throws.
 * @property {((key: Uint8Array, text: string) => string) | undefined} hmac  HMAC-SHA-256 in hex at once; without it
 *   WebCrypto does it, behind.
 * @property {(run: () => void) => void} detached  Runs something outside of the host's present async context, so that
 *   no trace of the host's takes in what is ours, and nothing of that context is kept.
 * @property {((ms: number, run: () => void) => () => void) | undefined} every  A timer that repeats and keeps no
 *   process alive; gives the function that stops it.
 * @property {((at: {idle: () => void, last: () => void}) => () => void) | undefined} onExit  Calls `idle` when the
 *   process has nothing more to do (it may start work), and `last` when it ends (only what is done at once counts);
 *   gives the function that takes both back.
 * @property {(() => string | undefined) | undefined} sdkVersion  The version of `ai` that is installed.
 * @property {(() => import('./outbox.js').Sink) | undefined} defaultSink  Where records go if nobody says.
 */

/** @type {Platform} */
export const platform = {
  env: environment,
  storage: undefined,
  isContextCheap: false,
  personalKey: undefined,
  hmac: undefined,
  detached: (run) => run(),
  every: undefined,
  onExit: undefined,
  sdkVersion: undefined,
  defaultSink: undefined,
};

/** @param {string} name */
function environment(name) {
  try {
    return globalThis.process?.env?.[name] || undefined;
  } catch {
    return undefined; // some runtimes ask for a permission first; without it the setting is not set
  }
}

const complaints = new Set();

/**
 * Say something to the people who run the host, each text once in a process, and never fail over it.
 * @param {string} text  What is wrong and what to do; never content of a run.
 */
export function complain(text) {
  if (complaints.has(text) || complaints.size >= 100) return;
  complaints.add(text);
  try {
    globalThis.console.warn(`stopcause: ${text}`);
  } catch {
    // a console that is absent or throws is the host's own affair
  }
}

/**
 * The code of a system's error, or its type: never its text.
 * @param {any} error
 * @returns {string}
 */
export function codeOf(error) {
  const code = String(error?.code ?? error?.name);
  return /^\w{1,40}$/.test(code) ? code : 'unknown';
}

// Taken when the hook is loaded: a host's test that fakes the clock later must not stop records.
const { setImmediate, setTimeout, clearTimeout } = globalThis;

/**
 * Start something behind, after the present work of the host. Cheap; `run` must not throw.
 * @param {() => void} run
 */
export function soon(run) {
  if (setImmediate) setImmediate(run);
  else setTimeout(run, 0);
}

/**
 * A timer that keeps no process alive, where the runtime can do that.
 * @param {number} ms
 * @param {() => void} run  Must not throw.
 * @returns {() => void} Takes it back.
 */
export function later(ms, run) {
  const timer = setTimeout(run, ms);
  /** @type {any} */ (timer).unref?.();
  return () => clearTimeout(timer);
}

/**
 * A timer for which the process stays, because somebody waits.
 * @param {number} ms
 * @param {() => void} run  Must not throw.
 * @returns {() => void} Takes it back.
 */
export function meanwhile(ms, run) {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}
