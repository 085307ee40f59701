// The hook changes nothing: on every path the application gets the same results, errors, chunks, callbacks in the same
// order, prints and warnings as from the bare SDK. Once where it listens to every callback, once where it listens to none.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as ai from 'ai';
import { allPaths } from '../paths/index.js';
import { runPath } from '../support/transcript.js';

const paths = await allPaths();

for (const quiet of [false, true]) {
  for (const path of paths) {
    test(`${path.id}, the application ${quiet ? 'listens to nothing' : 'listens'}`, async () => {
      const bare = await runPath(path, { ai, hooked: false, quiet });
      const hooked = await runPath(path, { ai, hooked: true, quiet });
      assert.deepEqual(hooked.transcript, bare.transcript);
      assert.equal(JSON.stringify(hooked.transcript), JSON.stringify(bare.transcript), 'keys in the same order');
      assert.ok(hooked.records.length >= 2, 'and yet it was watched');
      assert.equal(bare.records.length, 0);
    });
  }
}

test('a hook that changed a result would be seen', async () => {
  const path = paths.find(({ id }) => id === 'generate-natural-without-outcome');
  const bare = await runPath(path, { ai, hooked: false });
  for (const change of [withoutStep, withOwnKey, withOtherError]) {
    const changed = await runPath(path, { ai: { ...ai, generateText: change }, hooked: false });
    assert.notDeepEqual(changed.transcript, bare.transcript, change.name);
  }
});

async function withoutStep(options) {
  const result = await ai.generateText(options);
  result.steps.pop();
  return result;
}

async function withOwnKey(options) {
  return Object.assign(await ai.generateText(options), { stopcause: true });
}

async function withOtherError() {
  throw new Error('another');
}
