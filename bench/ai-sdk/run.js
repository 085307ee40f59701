// The figures of the AI SDK hook: added CPU time, memory, rejections. `make bench` prints them.
//
//   node bench/ai-sdk/run.js [cpu|memory] [SHARE]     SHARE of the rounds and runs, 1 without it
//   node --cpu-prof bench/ai-sdk/run.js profile DOOR  2,000 watched runs and nothing else
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { cpuFigures } from './cpu.js';
import { doors, watchers } from './loads.js';
import { memoryFigures } from './memory.js';

setFlagsFromString('--expose-gc');
globalThis.gc = runInNewContext('gc');
globalThis.AI_SDK_LOG_WARNINGS = false;
let rejections = 0;
process.on('unhandledRejection', () => rejections++);

const number = (value, digits) =>
  value.toLocaleString('en', { maximumFractionDigits: digits, minimumFractionDigits: digits });

async function cpu(file, share) {
  for await (const { door, watcher, us, addedUs, ratio } of cpuFigures(file, share)) {
    const added =
      watcher === 'bare'
        ? ''
        : `${number(addedUs, 1).padStart(10)} us more ${number((ratio - 1) * 100, 1).padStart(7)} %`;
    console.log(`${`ai-sdk: ${door}, ${watcher}`.padEnd(42)}${number(us, 1).padStart(12)} us CPU a run  ${added}`);
  }
}

async function memory(file, share) {
  for await (const { door, watcher, heap } of memoryFigures(file, share)) {
    const sizes = heap.map((mb) => number(mb, 1).padStart(8)).join('');
    console.log(`${`ai-sdk: heap, ${door}, ${watcher}`.padEnd(42)}${sizes} MB after 2,000, 10,000, 20,000 runs`);
  }
}

async function profile(file, door) {
  const api = watchers(file).file;
  for (let done = 0; done < 2000; done++) await doors[door](api);
  await api.flush();
}

const [what = 'all', argument] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'stopcause-bench-'));
const file = join(folder, 'receipts.ndjson');
if (what === 'profile') await profile(file, argument ?? 'generateText');
if (what === 'all' || what === 'cpu') await cpu(file, Number(argument ?? 1));
if (what === 'all' || what === 'memory') await memory(file, Number(argument ?? 1));
if (what !== 'profile') console.log(`${'ai-sdk: unhandled rejections'.padEnd(42)}${String(rejections).padStart(12)}`);
rmSync(folder, { recursive: true });
