/**
 * Values that name a person, and what stands in their place: a keyed hash. The patterns and the hash are those of
 * `stopcause/receipts` (identifiers.py, pseudonyms.py); tests hold both to the same examples. Where the key comes from
 * in Node is in `key.js`; where there is no key, the value goes and a finding says so.
 */
import { complain, platform } from './platform.js';

const HASH_HEAD = 'hmac:';
const HASH_LENGTH = 32;
const EMAIL = /[^@\s:/]+@[^@\s]+\.[A-Za-z]{2}/;
const KEYS = [
  'eyJ[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8}', // JWT
  '(?:^|[^A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}', // keys by their makers' prefixes: AWS,
  '(?:^|[^A-Za-z0-9])hf_[A-Za-z0-9]{30}', // Hugging Face, often without any digit,
  '(?:^|[^A-Za-z0-9])(?:sk-|[spr]k_live_|gh[pousr]_|github_pat_|glpat-|xox[abposr]-|AIza|ya29\\.)' + // and the others,
    '(?=[-_.A-Za-z]*\\d)[-_.A-Za-z0-9]{16}', // with one
];
const PHONES = [
  '(?:^|[^A-Za-z0-9])(?:\\+|00)\\d[\\d./-]{6,18}\\d$', // international
  '(?:^|[^A-Za-z0-9.-])\\d{3}[./-]\\d{3}[./-]\\d{4}$', // North American
];
const KEY_OR_PHONE = new RegExp([...KEYS, ...PHONES].join('|'));
const IBAN = /(?:^|[^A-Za-z0-9])([A-Z]{2}\d{2}[A-Z0-9]{11,30})$/;
const FIELDS = ['thread_id', 'owner', 'actor'];

/**
 * @typedef {Record<string, any>} Plain  A record, or a part of one.
 * @typedef {{path: (string | number)[], text: string}} Place  Where in a record a personal value stands.
 */

/**
 * Whether an identifier looks like an e-mail address, phone number, JWT, key or IBAN.
 * @param {string} text
 */
export function isPersonal(text) {
  if (text.startsWith(HASH_HEAD)) return false;
  return (text.includes('@') && EMAIL.test(text)) || KEY_OR_PHONE.test(text) || isIban(text);
}

/** @param {string} text */
function isIban(text) {
  const found = IBAN.exec(text);
  if (!found) return false;
  const digits = [...found[1].slice(4), ...found[1].slice(0, 4)].map((letter) => parseInt(letter, 36)).join('');
  return BigInt(digits) % 97n === 1n;
}

/**
 * The record without what names a person: the same one where nothing does, else a copy.
 * @param {Plain} record
 * @returns {Plain | Promise<Plain>} A promise only where the hash is made by WebCrypto. It never rejects.
 */
export function withoutPersonal(record) {
  const places = personalPlaces(record);
  if (!places.length) return record;
  const key = hashKey();
  if (!key) return replaced(record, places, []);
  const { hmac } = platform;
  if (hmac)
    return replaced(
      record,
      places,
      places.map(({ text }) => pseudonym(text, (rest) => hmac(key, rest))),
    );
  return Promise.all(places.map(({ text }) => pseudonymBehind(key, text))).then(
    (hashes) => replaced(record, places, hashes),
    () => replaced(record, places, []), // no WebCrypto here: as without a key
  );
}

/** @param {Plain} record @returns {Place[]} */
function personalPlaces(record) {
  /** @type {Place[]} */
  const places = [];
  addPlaces(places, record, FIELDS, []);
  if (record.labels) addPlaces(places, record.labels, Object.keys(record.labels), ['labels']);
  if (record.abort) addPlaces(places, record.abort, FIELDS, ['abort']);
  if (record.approval) addPlaces(places, record.approval, FIELDS, ['approval']);
  record.approvals?.forEach((/** @type {Plain} */ each, /** @type {number} */ index) => {
    addPlaces(places, each, FIELDS, ['approvals', index]);
  });
  return places;
}

/** @param {Place[]} places @param {Plain} owner @param {string[]} names @param {(string | number)[]} path */
function addPlaces(places, owner, names, path) {
  for (const name of names) {
    const text = owner[name];
    if (typeof text === 'string' && isPersonal(text)) places.push({ path: [...path, name], text });
  }
}

/** @param {Plain} record @param {Place[]} places @param {string[]} hashes  None: the values go. */
function replaced(record, places, hashes) {
  const copy = places.reduce((owner, { path }, index) => withValue(owner, path, hashes[index]), record);
  const findings = hashes.length
    ? [{ code: 'personal_value_replaced' }]
    : places.map(({ path }) => ({ code: 'personal_dropped', where: path.at(-1) }));
  return { ...copy, findings: [...(record.findings ?? []), ...findings] };
}

/** @param {any} owner @param {(string | number)[]} path @param {unknown} value @returns {any} */
function withValue(owner, [name, ...rest], value) {
  const copy = Array.isArray(owner) ? [...owner] : { ...owner };
  const inner = rest.length ? withValue(owner[name], rest, value) : value;
  if (inner === undefined) delete copy[name];
  else copy[name] = inner;
  return copy;
}

/**
 * A keyed hash in place of `text`. A leading `user:` or the like stays.
 * @param {string} text
 * @param {(rest: string) => string} hmac  HMAC-SHA-256 in hex.
 */
function pseudonym(text, hmac) {
  const { head, rest } = parted(text);
  return `${head}${HASH_HEAD}${hmac(rest).slice(0, HASH_LENGTH)}`;
}

/** @param {Uint8Array} key @param {string} text */
async function pseudonymBehind(key, text) {
  const { subtle } = globalThis.crypto;
  const bytes = new TextEncoder();
  const raw = new Uint8Array(key); // a copy: what is imported must stand in a buffer of its own
  const imported = await subtle.importKey('raw', raw, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const signed = new Uint8Array(await subtle.sign('HMAC', imported, bytes.encode(parted(text).rest)));
  return pseudonym(text, () => Array.from(signed, (byte) => byte.toString(16).padStart(2, '0')).join(''));
}

/** @param {string} text */
function parted(text) {
  const [, head, rest] = /^(\p{L}+:)(.+)$/su.exec(text) ?? ['', '', text];
  return { head, rest };
}

/** @returns {Uint8Array | undefined} */
function hashKey() {
  const chosen = platform.env('STOPCAUSE_HMAC_KEY');
  if (chosen) return new TextEncoder().encode(chosen);
  const kept = platform.personalKey?.();
  if (!kept) complain('a value that names a person was left out of a record: set STOPCAUSE_HMAC_KEY to keep its hash.');
  return kept;
}
