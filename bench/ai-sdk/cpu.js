// CPU time per run, bare and watched, in one process by short turns: the machine is shared and the JIT has moods, so
// what counts is the median over many rounds, each against the bare turn of the same round. `bare` stands there twice:
// what the second differs by is the noise. The collector runs when it likes: forcing it throws compiled code away too.
import { doors, watchers } from './loads.js';

const ROUNDS = 500;
const RUNS = { generateText: 10, streamText: 3 }; // a turn; about 10 ms
const WARM_UP = 50;

/**
 * @param {string} file where the file sink writes
 * @param {number} share of the rounds; 1 is all of them
 * @yields {{door: string, watcher: string, us: number, addedUs: number, ratio: number}} medians, microseconds a run
 */
export async function* cpuFigures(file, share = 1) {
  const { bare, ...watched } = watchers(file);
  const apis = { bare, again: bare, ...watched };
  for (const [door, runs] of Object.entries(RUNS)) {
    const turns = await take((api) => turn(doors[door], api, runs), apis, ROUNDS * share);
    for (const watcher of Object.keys(apis)) yield { door, watcher, ...against(turns.bare, turns[watcher]) };
  }
}

async function take(measure, apis, rounds) {
  const names = Object.keys(apis);
  const turns = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = -WARM_UP; round < rounds; round++) {
    for (const name of rotated(names, round + WARM_UP)) {
      const us = await measure(apis[name]);
      if (round >= 0) turns[name].push(us);
    }
  }
  return turns;
}

/** Every watcher stands at every place of a round, as often as the others. */
const rotated = (names, by) => names.map((_, index) => names[(index + by) % names.length]);

/** Microseconds a run, with all that it leaves to be done behind. */
async function turn(run, api, runs) {
  const before = process.cpuUsage();
  for (let done = 0; done < runs; done++) await run(api);
  await api.flush();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / runs;
}

function against(bare, turns) {
  const addedUs = median(turns.map((us, round) => us - bare[round]));
  return { us: median(turns), addedUs, ratio: 1 + addedUs / median(bare) };
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
