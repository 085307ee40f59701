/**
 * What a value must be to stand in a record: shapes of strings, finite numbers, times, ids. Everything else becomes
 * nothing. The shapes and their bounds are those of `stopcause/receipts` (identifiers.py, model.py); a test holds both
 * to one list of examples. What tells a value that names a person, and replaces it, is in `personal.js`.
 */

const IDENTIFIER = /^[A-Za-z0-9._:/@#+=~-]{1,200}$/;
// Python and the engine behind its models disagree about other numerals (²) and about marks: neither is let through.
const DISPLAY_NAME = /^[\p{L}\p{Nd}\p{Nl}_.:/@+-]{1,64}$/u;
const TIME = /^(\d{4})-(\d\d)-(\d\d)T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

const LONGEST_IDENTIFIER = 200;
const LONGEST_NAME_READ = 1000; // longer than any name with all its spaces; what is longer is not looked at
const LONGEST_TIME = 35;
const MOST_LABELS = 8;
const FIRST_TIME = 0; // years 1970 to 2999: others no run can have
const END_OF_TIME = Date.UTC(3000, 0, 1);

/**
 * @param {unknown} value
 * @returns {string | undefined} The value, if it is 1 to 200 of A-Z a-z 0-9 . _ : / @ # + = ~ -
 */
export function identifier(value) {
  if (typeof value !== 'string' || value.length > LONGEST_IDENTIFIER) return undefined;
  return IDENTIFIER.test(value) ? value : undefined;
}

/**
 * @param {unknown} value
 * @returns {string | undefined} The value with spaces as `_`, if that is 1 to 64 letters, digits or . _ : / @ + -
 */
export function displayName(value) {
  if (typeof value !== 'string' || value.length > LONGEST_NAME_READ) return undefined;
  if (DISPLAY_NAME.test(value)) return value;
  const name = value.split(/\s+/).filter(Boolean).join('_');
  return DISPLAY_NAME.test(name) ? name : undefined;
}

/**
 * @param {unknown} value
 * @returns {number | undefined} The value, if it is an integer from 0 to 2^53-1.
 */
export function count(value) {
  return Number.isSafeInteger(value) && /** @type {number} */ (value) >= 0 ? /** @type {number} */ (value) : undefined;
}

/**
 * @param {unknown} value
 * @returns {number | undefined} The value, if it is a finite number and not negative.
 */
export function number(value) {
  return Number.isFinite(value) && /** @type {number} */ (value) >= 0 ? /** @type {number} */ (value) : undefined;
}

/**
 * @param {unknown} value  A Date, milliseconds since 1970, or an RFC 3339 time with its offset.
 * @returns {string | undefined} The same moment as RFC 3339 in UTC with milliseconds, if a run can have it.
 */
export function time(value) {
  try {
    const ms = milliseconds(value);
    return ms >= FIRST_TIME && ms < END_OF_TIME ? new Date(ms).toISOString() : undefined;
  } catch {
    return undefined; // an object of the host whose methods throw is no time
  }
}

/** @param {any} value */
function milliseconds(value) {
  if (typeof value === 'number') return value;
  if (typeof value === 'string') return parsedTime(value);
  return typeof value?.getTime === 'function' ? Number(value.getTime()) : NaN;
}

/** @param {string} text */
function parsedTime(text) {
  const found = text.length <= LONGEST_TIME ? TIME.exec(text) : null;
  if (!found) return NaN;
  const [, year, month, day] = found.map(Number);
  const isOfMonth = day <= new Date(Date.UTC(year, month, 0)).getUTCDate(); // else the 30th of February is in March
  return isOfMonth ? Date.parse(text) : NaN;
}

/**
 * Labels as a record may carry them. Reading one may run code of the host, which may throw; that costs this label only.
 * @param {unknown} value  Name -> value; numbers and booleans become strings, null and undefined are absent.
 * @returns {{labels: Record<string, string> | undefined, dropped: number}} Up to 8 of them, and how many more
 *   there were that no record may carry.
 */
export function labels(value) {
  /** @type {[string, string][]} */
  const kept = [];
  let dropped = 0;
  for (const name of keysOf(value)) {
    const text = kept.length < MOST_LABELS && identifier(name) ? labelValue(value, name) : undefined;
    if (text === undefined) dropped += 1;
    else if (text !== null) kept.push([/** @type {string} */ (name), text]);
  }
  return { labels: kept.length ? Object.fromEntries(kept) : undefined, dropped };
}

/** @param {unknown} value @returns {(string | symbol)[]} */
function keysOf(value) {
  if (typeof value !== 'object' || value === null) return [];
  try {
    return Reflect.ownKeys(value);
  } catch {
    return []; // a proxy that does not say what it holds
  }
}

/** @param {any} owner @param {string | symbol} name @returns {string | null | undefined} Null: absent. */
function labelValue(owner, name) {
  try {
    const value = owner[name] ?? null;
    const isPlain = typeof value === 'boolean' || Number.isFinite(value) || typeof value === 'bigint';
    return value === null ? null : identifier(isPlain ? String(value) : value);
  } catch {
    return undefined; // an accessor that throws
  }
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
const LAST_COUNT = 0xfff;
const random = new Uint8Array(512); // drawn in one go: a draw for each id would cost more than all the rest of it
const TAIL = 8;
const ids = { ms: 0, count: 0, used: random.length };

/**
 * A new UUIDv7. Each is greater than the one before, also inside a millisecond and after the clock went back.
 * @returns {string}
 */
export function uuid7() {
  advance(Date.now());
  if (ids.used >= random.length) refill();
  const tail = random.subarray(ids.used, ids.used + TAIL);
  ids.used += TAIL;
  const head = ids.ms.toString(16).padStart(12, '0');
  const middle = (0x7000 | ids.count).toString(16);
  const variant = HEX[0x80 | (tail[0] & 0x3f)];
  const rest = HEX[tail[2]] + HEX[tail[3]] + HEX[tail[4]] + HEX[tail[5]] + HEX[tail[6]] + HEX[tail[7]];
  return `${head.slice(0, 8)}-${head.slice(8)}-${middle}-${variant}${HEX[tail[1]]}-${rest}`;
}

/** @param {number} now */
function advance(now) {
  if (now > ids.ms) {
    ids.ms = now;
    ids.count = 0;
  } else if (ids.count < LAST_COUNT) {
    ids.count += 1;
  } else {
    ids.ms += 1;
    ids.count = 0;
  }
}

function refill() {
  globalThis.crypto.getRandomValues(random);
  ids.used = 0;
}
