// Tests with a folder of their own, and what they read there.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { test } from 'node:test';

/** The lines of a file. */
export const read = async (path) => (await readFile(path, 'utf8')).trimEnd().split('\n');
export const recordsIn = async (path) => (await read(path)).map((line) => JSON.parse(line));

/** A test with a folder of its own and none of this machine's settings. */
export const inFolder = (name, body) =>
  test(name, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'file-sink-'));
    const before = { ...process.env };
    for (const key of Object.keys(before).filter((each) => each.startsWith('STOPCAUSE_'))) delete process.env[key];
    t.after(async () => {
      for (const key of Object.keys(process.env)) delete process.env[key];
      Object.assign(process.env, before);
      await rm(folder, { recursive: true, force: true });
    });
    await body(folder, t);
  });
