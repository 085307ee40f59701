// The package as it is shipped: what its doors export, what they import, and that the types name what the code reads.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { approvalFact } from '../src/approvals.js';
import { cleaned } from '../src/options.js';
import { outcomeRecord } from '../src/outcomes.js';
import { VERSION } from '../src/version.js';

const root = new URL('../', import.meta.url);
const read = (path) => readFileSync(new URL(path, root), 'utf8');
const code = (path) => read(path).replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
const shipped = JSON.parse(read('package.json'));
const types = read('src/index.d.ts');

/** Every module that `path` draws in, itself included, and what of that is not of this package. */
function drawnIn(path, found = { own: new Set(), foreign: new Set() }) {
  if (found.own.has(path)) return found;
  found.own.add(path);
  for (const [, from] of read(path).matchAll(/^(?:import|export)\s[^;]*?from\s+'([^']+)'|^import\s+'([^']+)'/gm)) {
    if (from?.startsWith('./')) drawnIn(`src/${from.slice(2)}`, found);
    else found.foreign.add(from);
  }
  return found;
}

/** The members that an interface of the types has, without those that it inherits. */
function members(name) {
  const [, body] = types.match(new RegExp(`^export interface ${name}\\b[^{]*\\{\\n([\\s\\S]*?)^\\}`, 'm'));
  return [...body.matchAll(/^ {2}(\w+)\??[:(]/gm)].map(([, member]) => member).sort();
}

/** What code asks an object for. */
function askedOf(work) {
  const asked = new Set();
  const listen = { get: (_, key) => void asked.add(key) };
  work(new Proxy({}, listen));
  asked.delete('then'); // asked of every answer: a promise is none
  return [...asked].sort();
}

test('the edge-safe door imports nothing but its own modules', () => {
  const { own, foreign } = drawnIn('src/index.js');
  assert.ok(own.has('src/watch.js') && own.has('src/outbox.js'), 'the walk found the core');
  assert.deepEqual([...foreign], []);
  for (const path of own) assert.doesNotMatch(code(path), /\bimport\(|\brequire\(|\bBuffer\b/, path);
});

test('the Node door imports from Node and nothing else', () => {
  const { foreign } = drawnIn('src/node.js');
  assert.ok(foreign.size > 0, 'the walk sees foreign imports');
  assert.deepEqual(
    [...foreign].filter((from) => !from.startsWith('node:')),
    [],
  );
});

test('the edge-safe door works where none of what Node adds is there', async () => {
  const script = fileURLToPath(new URL('support/edge.mjs', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [script]);
  assert.deepEqual(JSON.parse(stdout), ['run.started', 'run.stopped natural']);
});

test('nothing is drawn in but the SDK beside it', () => {
  assert.equal(shipped.dependencies, undefined);
  assert.deepEqual(shipped.peerDependencies, { ai: '>=7 <8' });
});

test('records name the version that is shipped', () => assert.equal(VERSION, shipped.version));

test('every door has its file and its types', () => {
  for (const door of ['.', './node'])
    for (const target of Object.values(shipped.exports[door])) assert.ok(existsSync(new URL(target, root)), target);
});

test('the types export what the doors export', async () => {
  const declared = [...types.matchAll(/^export function (\w+)/gm)].map(([, name]) => name);
  assert.deepEqual(declared.toSorted(), Object.keys(await import('@stopcause/ai-sdk')));
  const nodes = [...read('src/node.d.ts').matchAll(/^export function (\w+)/gm)].map(([, name]) => name);
  assert.deepEqual([...declared, ...nodes].toSorted(), Object.keys(await import('@stopcause/ai-sdk/node')));
});

test('the types name the options that are read, and no others', () => {
  const said = [...members('SharedOptions'), ...members('CallOptions')].sort();
  assert.deepEqual(
    askedOf((options) => cleaned(options)),
    said,
  );
  assert.deepEqual(
    askedOf((facts) => outcomeRecord('r1', facts, {})),
    members('OutcomeFacts'),
  );
  const wait = { approvalId: 'a1', kind: 'tool_call', tool: 'refund', toolCallId: 'c1' };
  assert.deepEqual(
    askedOf((route) => approvalFact(wait, () => route, 'r1', '2026-01-01T00:00:00Z', 0)),
    members('Route'),
  );
});
