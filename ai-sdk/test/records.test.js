// Shapes of values: what stands in a record, and what becomes nothing.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { runInNewContext } from 'node:vm';
import { isPersonal, withoutPersonal } from '../src/personal.js';
import { platform } from '../src/platform.js';
import { count, displayName, identifier, labels, number, time, uuid7 } from '../src/records.js';
import { complaints } from './support/watchful.js';

const shapes = JSON.parse(readFileSync(new URL('./support/shapes.json', import.meta.url), 'utf8'));
const MEGABYTE = 'x'.repeat(1 << 20);
const STRANGE = [undefined, null, Symbol('s'), () => 'f', {}, [], 1n, NaN, Infinity, true, new Proxy({}, {})];

const given = (env) => {
  platform.env = (name) => env[name];
};

test('identifiers and names are those of the list that the Python also reads', () => {
  for (const { text, identifier: is } of shapes.identifiers) assert.equal(identifier(text), is ? text : undefined);
  for (const { text, name } of shapes.names) assert.equal(displayName(text), name ?? undefined, JSON.stringify(text));
});

test('what is no string is no identifier and no name', () => {
  for (const each of STRANGE) assert.deepEqual([identifier(each), displayName(each)], [undefined, undefined]);
});

test('a string of a megabyte is not looked at', () => {
  const start = performance.now();
  for (let turn = 0; turn < 10_000; turn += 1) {
    assert.equal(identifier(MEGABYTE), undefined);
    assert.equal(displayName(MEGABYTE), undefined);
  }
  assert.ok(performance.now() - start < 1000); // looking at them would take minutes
});

test('counts are integers that every reader keeps exact', () => {
  for (const each of [0, 1, 2 ** 53 - 1]) assert.equal(count(each), each);
  for (const each of [-1, 1.5, 2 ** 53, '3', ...STRANGE]) assert.equal(count(each), undefined, String(each?.toString));
});

test('numbers are finite and not negative', () => {
  for (const each of [0, 0.25, 1e300]) assert.equal(number(each), each);
  for (const each of [-0.1, '3', ...STRANGE]) assert.equal(number(each), undefined);
});

test('a time comes as a date, as milliseconds or as text with its offset', () => {
  const moment = '2026-11-28T08:00:00.250Z';
  const foreign = runInNewContext(`new Date('${moment}')`);
  const same = [new Date(moment), Date.parse(moment), foreign, moment, '2026-11-28T09:00:00.25+01:00'];
  for (const each of same) assert.equal(time(each), moment);
  assert.equal(time('2026-11-28T08:00:00.123456789Z'), '2026-11-28T08:00:00.123Z');
  assert.equal(time('2028-02-29T00:00:00Z'), '2028-02-29T00:00:00.000Z');
});

test('what is no time of a run is none', () => {
  const texts = ['2026-11-28', '2026-11-28T08:00:00', '2026-02-29T00:00:00Z', '2026-11-28T24:00:00Z', '1764316800'];
  const dates = [new Date(NaN), new Date('3000-01-01T00:00:00Z'), new Date('1969-12-31T23:59:59Z'), -1, 1e18];
  const throws = { getTime: () => assert.fail('of the host') };
  for (const each of [...texts, ...dates, throws, MEGABYTE, ...STRANGE]) assert.equal(time(each), undefined);
});

test('labels are eight identifiers, and what else was given is counted', () => {
  const given = { tenant: 'acme', retries: 3, beta: true, big: 7n, prose: 'some words', huge: MEGABYTE, nan: NaN };
  const odd = { ...given, [Symbol('s')]: 'x', call: () => 'x', nested: {}, absent: undefined, 'a name': 'x' };
  Object.defineProperty(odd, 'trap', { enumerable: true, get: () => assert.fail('of the host') });

  assert.deepEqual(labels(odd), { labels: { tenant: 'acme', retries: '3', beta: 'true', big: '7' }, dropped: 8 });
});

test('the ninth label and those after it are dropped', () => {
  const ten = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`l${index}`, index]));

  const { labels: kept, dropped } = labels(ten);

  assert.deepEqual([Object.keys(kept).length, dropped], [8, 2]);
});

test('what holds no labels gives none', () => {
  const shut = new Proxy({}, { ownKeys: () => assert.fail('of the host') });
  for (const each of [undefined, null, 'text', 7, {}, shut])
    assert.deepEqual(labels(each), { labels: undefined, dropped: 0 });
  assert.deepEqual(Object.getPrototypeOf(labels(JSON.parse('{"__proto__":"x"}')).labels), Object.prototype);
});

test('ids are of version 7, carry the time and differ', () => {
  const before = Date.now();
  const made = Array.from({ length: 20_000 }, uuid7);
  const pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

  assert.ok(made.every((id) => pattern.test(id)));
  assert.equal(new Set(made).size, made.length);
  assert.deepEqual(made, made.toSorted());
  const ms = parseInt(made[0].replace('-', '').slice(0, 12), 16);
  assert.ok(ms >= before && ms <= Date.now() + 20);
});

test('ids stay in order when the clock jumps back, and stands', (t) => {
  const now = Date.now();
  const clock = t.mock.method(Date, 'now', () => now + 60_000);
  const made = [uuid7()];
  clock.mock.mockImplementation(() => now - 3_600_000);
  for (let turn = 0; turn < 10_000; turn += 1) made.push(uuid7());

  assert.deepEqual(made, made.toSorted());
  assert.equal(new Set(made).size, made.length);
});

test('what names a person is what the list says', () => {
  for (const { text, personal } of shapes.personal) assert.equal(isPersonal(text), personal, text);
});

test('telling takes no long time, whatever the string', () => {
  const long = [
    '@'.repeat(200),
    'a'.repeat(200),
    `${'a.'.repeat(99)}@`,
    '1'.repeat(200),
    'A1'.repeat(100),
    '-sk'.repeat(66),
  ];
  const start = performance.now();
  for (let turn = 0; turn < 100; turn += 1) for (const each of long) isPersonal(each);
  assert.ok(performance.now() - start < 600); // a millisecond each, on a busy machine
});

test('WebCrypto gives the hashes of the Python where there is no Node', async () => {
  given({ STOPCAUSE_HMAC_KEY: shapes.key });
  assert.equal(platform.hmac, undefined);

  for (const { text, personal, pseudonym } of shapes.personal) {
    const { owner, findings } = await withoutPersonal({ owner: text });
    assert.equal(owner, personal ? pseudonym : text);
    assert.deepEqual(findings, personal ? [{ code: 'personal_value_replaced' }] : undefined);
  }
});

test('every place that may name a person is looked at, and the given record stays as it is', async () => {
  given({ STOPCAUSE_HMAC_KEY: shapes.key });
  const [ann] = shapes.personal.filter(({ text }) => text === 'ann@example.com');
  const record = (who) => ({
    thread_id: who,
    agent: 'x@example.com',
    labels: { who, tenant: 'acme' },
    abort: { actor: who, requested_at: 'then' },
    approval: { approval_id: 'a1', owner: who, actor: who },
    approvals: [
      { approval_id: 'a2', owner: 'team:pay' },
      { approval_id: 'a3', owner: who },
    ],
  });
  const given_ = { ...record(ann.text), findings: [{ code: 'first' }] };

  const clean = await withoutPersonal(given_);

  assert.deepEqual(clean, {
    ...record(ann.pseudonym),
    findings: [{ code: 'first' }, { code: 'personal_value_replaced' }],
  });
  assert.deepEqual(given_, { ...record(ann.text), findings: [{ code: 'first' }] });
});

test('without a key the value goes and a finding says where it was', async () => {
  given({});
  const record = { owner: 'ann@example.com', labels: { who: 'ann@example.com', tenant: 'acme' } };

  const clean = await withoutPersonal(record);

  const findings = ['owner', 'who'].map((where) => ({ code: 'personal_dropped', where }));
  assert.deepEqual(clean, { labels: { tenant: 'acme' }, findings });
  assert.match(complaints().join(), /set STOPCAUSE_HMAC_KEY/);
});

test('a record that names nobody is not copied', () => {
  const record = { owner: 'team:pay', labels: { tenant: 'acme' }, approvals: [{ owner: 'user:ann' }] };
  assert.equal(withoutPersonal(record), record);
});
