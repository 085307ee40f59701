// The heap after a collection, after 2,000, 10,000 and 20,000 runs: what a service that runs for weeks would keep.
import { setImmediate as turn } from 'node:timers/promises';
import { doors, watchers } from './loads.js';

const STOPS = [2000, 10_000, 20_000];
const AT_ONCE = 50;

/**
 * @param {string} file where the file sink writes
 * @param {number} share of the runs; 1 is all of them
 * @yields {{door: string, watcher: string, heap: number[]}} MB at each stop
 */
export async function* memoryFigures(file, share = 1) {
  const apis = watchers(file);
  for (const door of Object.keys(doors)) {
    for (const watcher of ['bare', 'file']) {
      yield { door, watcher, heap: await grown(doors[door], apis[watcher], share) };
    }
  }
}

async function grown(run, api, share) {
  const heap = [];
  let done = 0;
  for (const stop of STOPS) {
    for (; done < stop * share; done += AT_ONCE) {
      await Promise.all(Array.from({ length: AT_ONCE }, () => run(api)));
      await api.flush(); // a real model waits for its network, and what is done behind gets its turn
    }
    heap.push(await settledHeap(api));
  }
  return heap;
}

/** What finalizers free shows only after the turn in which they ran. */
async function settledHeap(api) {
  for (let round = 0; round < 4; round++) {
    await api.flush();
    globalThis.gc();
    await turn();
  }
  return process.memoryUsage().heapUsed / 1e6;
}
