// Which run is going on here, so that an agent inside a tool knows whose child it is.
//
// Where the runtime has no AsyncLocalStorage, nobody knows; the application can then say `parentRunId`.
import { platform } from './platform.js';

/** @type {any} */
let storage;

/**
 * Calls `work` so that what it starts, now or later, finds `run` as its parent.
 * @template T @param {import('./run.js').Run} run @param {() => T} work @returns {T}
 */
export function inside(run, work) {
  if (!run.call.isNested) return work();
  storage ??= platform.storage && new platform.storage();
  return storage === undefined ? work() : storage.run(run, work);
}

/** @returns {import('./run.js').Run | undefined} */
export const currentRun = () => storage?.getStore();

/** @type {WeakMap<object, string>} */
const ids = new WeakMap();

/** @param {unknown} made a result or an error @param {string} id */
export function remember(made, id) {
  if ((typeof made === 'object' && made !== null) || typeof made === 'function') ids.set(made, id);
}

/**
 * The id of the run that gave this result or threw this error.
 * @param {unknown} made
 * @returns {string | undefined}
 */
export const runOf = (made) => ids.get(/** @type {object} */ (made));
