// Values as plain data that can be compared: what the application can see of a result, an error, a chunk or an event.
//
// Getters are read, classes are named, errors keep class, message and own keys, and the application's own objects are
// told by identity. What differs between any two runs (times, durations, ports, ids that no knob fixes) is replaced.
import { createHash } from 'node:crypto';

const LONGEST = 200; // characters that are kept as they are
const DIFFERS = /(Ms|PerSecond|Port)$/; // durations, and the ports of a connection
const RANDOM = [
  [/\baitxt-[A-Za-z0-9]{24}\b/g, 'aitxt-[id]'],
  [/\b(127\.0\.0\.1|localhost):\d+/g, '$1:[port]'],
];

/**
 * @param {unknown} value
 * @param {Map<unknown, string>} [owned] The application's own objects, by name.
 */
export function digest(value, owned = new Map()) {
  return walk(value, { owned, above: [] });
}

function walk(value, context) {
  if (typeof value === 'string') return text(value);
  if (typeof value === 'symbol') return `[${String(value)}]`;
  if (typeof value === 'function') return '[function]';
  if (typeof value === 'bigint') return `[bigint ${value}]`;
  if (value === undefined) return '[undefined]';
  if (typeof value !== 'object' || value === null) return value;
  if (context.above.includes(value)) return '[above]';
  return object(value, { ...context, above: [...context.above, value] });
}

function text(value) {
  if (value.length <= LONGEST) return RANDOM.reduce((so, [pattern, word]) => so.replace(pattern, word), value);
  return `[${value.length} characters ${createHash('sha256').update(value).digest('hex').slice(0, 16)}]`;
}

function object(value, context) {
  if (value instanceof Date) return '[date]';
  if (value instanceof Promise) return '[promise]';
  if (value instanceof ReadableStream) return '[stream]';
  if (value instanceof AbortSignal) return '[signal]';
  if (className(value).startsWith('Zod')) return '[schema]';
  if (Array.isArray(value)) return value.map((each) => walk(each, context));
  const own = context.owned.has(value) ? { '[own]': context.owned.get(value) } : {};
  if (value instanceof Error) return { ...own, ...error(value, context) };
  return { ...own, ...fields(value, context) };
}

function error(value, context) {
  const { name, message, cause } = value;
  const keys = Reflect.ownKeys(value).filter((key) => key !== 'stack');
  const kept = keys.filter((key) => !['name', 'message', 'cause'].includes(key));
  const entries = kept.map((key) => [String(key), walk(value[key], context)]);
  const base = { '[class]': className(value), name, message: text(message), keys: keys.map(String) };
  return { ...base, ...(cause === undefined ? {} : { cause: walk(cause, context) }), ...Object.fromEntries(entries) };
}

function className(value) {
  return Object.getPrototypeOf(value)?.constructor?.name ?? 'null';
}

/** Own fields in their order, and for an instance of a class what its getters say. */
function fields(value, context) {
  const name = className(value);
  const isPlain = name === 'Object' || name === 'null';
  const keys = [...Reflect.ownKeys(value), ...(isPlain ? [] : getters(value))];
  const entries = [...new Set(keys)].map((key) => [String(key), field(value, key, context)]);
  return Object.fromEntries([...(isPlain ? [] : [['[class]', name]]), ...entries]);
}

function field(value, key, context) {
  let read;
  try {
    read = value[key];
  } catch (thrown) {
    return { '[threw]': walk(thrown, context) };
  }
  return DIFFERS.test(String(key)) ? timing(read) : walk(read, context);
}

function timing(value) {
  if (typeof value === 'number') return '[number]';
  if (typeof value !== 'object' || value === null) return walk(value, { owned: new Map(), above: [] });
  return Object.fromEntries(Object.keys(value).map((key) => [key, '[number]']));
}

function getters(value) {
  const found = [];
  for (let at = Object.getPrototypeOf(value); at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    const described = Object.entries(Object.getOwnPropertyDescriptors(at));
    found.push(...described.filter(([, { get }]) => get).map(([key]) => key));
  }
  return found;
}
