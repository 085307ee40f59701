// CPU time per run, bare and watched, each in a process of its own that works in short turns while the others wait.
//
// Processes, because what a watcher turns on stays on for the whole process: async context alone makes every promise
// dearer, also those of a bare call beside it. Turns, because the machine is shared: neighbours only ever make a turn
// dearer, so what counts is the turn that nine in ten were dearer than. `bare` stands there twice: what the second
// differs by is the noise. `context` is bare in a host whose tracing or framework has async context on already, `frame`
// bare on the context frames that Node has from 24 on; what is watched there is held against them.
import { fork } from 'node:child_process';
import { once } from 'node:events';

const ROUNDS = 300;
const RUNS = { generateText: 30, streamText: 8 }; // a turn; about 15 ms
const WARM_UP = 60;
const WATCHERS = ['bare', 'again', 'callbacks', 'function', 'file', 'nested'];
const IN_OTHER_HOSTS = ['context', 'nested+context', 'frame', 'nested+frame'];
const ALL = [...WATCHERS, ...IN_OTHER_HOSTS];
const FRAMES = '--experimental-async-context-frame';

/**
 * @param {string} file where the file sink writes
 * @param {number} share of the rounds; 1 is all of them
 * @yields {{door: string, watcher: string, us: number, addedUs: number, ratio: number}} microseconds a run
 */
export async function* cpuFigures(file, share = 1) {
  const workers = ALL.map((watcher) => startWorker(watcher, file));
  for (const [door, runs] of Object.entries(RUNS)) {
    const turns = await take(workers, { door, runs }, Math.ceil(ROUNDS * share));
    for (const [index, watcher] of ALL.entries()) {
      const host = ALL.indexOf(watcher.split('+')[1] ?? 'bare');
      yield { door, watcher, ...against(turns[host], turns[index]) };
    }
  }
  for (const worker of workers) worker.disconnect();
}

function startWorker(watcher, file) {
  const execArgv = watcher.endsWith('frame') ? [FRAMES] : [];
  const worker = fork(new URL('worker.js', import.meta.url), [watcher, file], { execArgv });
  return worker.on('exit', (code) => code && process.exit(code)); // it has said why
}

async function take(workers, work, rounds) {
  const turns = workers.map(() => []);
  for (let round = -WARM_UP; round < rounds; round++) {
    for (const index of rotated(workers.length, round + WARM_UP)) {
      workers[index].send(work);
      const [us] = await once(workers[index], 'message');
      if (round >= 0) turns[index].push(us);
    }
  }
  return turns;
}

/** Every watcher stands at every place of a round, as often as the others. */
const rotated = (count, by) => Array.from({ length: count }, (_, index) => (index + by) % count);

function against(bare, turns) {
  const [us, floor] = [low(turns), low(bare)];
  return { us, addedUs: us - floor, ratio: us / floor };
}

const low = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 10)];
