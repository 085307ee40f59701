// Runs every path with the real SDK and the hook, and writes fixtures/ai_sdk anew. Run it twice: nothing changes.
// `npm run record`, or `npm run record -- TEXT` for the paths whose id holds TEXT.
import { readdir, rm, writeFile } from 'node:fs/promises';
import * as ai from 'ai';
import { allPaths } from '../test/paths/index.js';
import { caseOf, FIXTURES, written } from '../test/support/cases.js';
import { runPath } from '../test/support/transcript.js';

const NODE = '22'; // the case files say which; another one would change every line of them
if (!process.versions.node.startsWith(`${NODE}.`)) throw new Error(`record with Node ${NODE}, not ${process.version}`);

const wanted = process.argv[2] ?? '';
const paths = await allPaths();

for (const path of paths.filter(({ id }) => id.includes(wanted))) {
  const ran = await runPath(path, { ai, hooked: true });
  await writeFile(new URL(`${path.id}.json`, FIXTURES), written(caseOf(path, ran)));
}
await dropOthers(new Set(paths.map(({ id }) => `${id}.json`)));
console.log(`${paths.length} paths`);

async function dropOthers(names) {
  const stale = (await readdir(FIXTURES)).filter((name) => !names.has(name));
  for (const name of stale) await rm(new URL(name, FIXTURES));
}
