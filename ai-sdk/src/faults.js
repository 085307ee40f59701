// Errors by their type names, codes and statuses.
//
// Here: what may be said of anything that was thrown. Not here: messages and stacks, which can hold a prompt, a key or a
// customer's name and are never read.
import { isPersonal } from './personal.js';
import { identifier } from './records.js';

const MOST_LINKS = 5; // of a chain of causes; a cycle ends there too
const TYPE_NAME = /^[A-Za-z_$][\w$.]{0,63}$/;

/**
 * @typedef {object} Fault
 * @property {string} type @property {string[]} chain outermost first
 * @property {string} [code] @property {number} [status] of HTTP
 */

/**
 * The `error` of a receipt. What was thrown can be anything, also something whose own properties throw.
 * @param {unknown} error
 * @returns {Fault}
 */
export function faultOf(error) {
  const links = linksOf(error);
  const fault = { type: typeOf(error), chain: links.map(typeOf) };
  const code = first(links, (link) => shortWord(link.code));
  const status = first(links, (link) => statusOf(link));
  if (code !== undefined) fault.code = code;
  if (status !== undefined) fault.status = status;
  return fault;
}

/**
 * The name of an error's type.
 * @param {unknown} error
 */
export function typeOf(error) {
  if (error === null || typeof error !== 'object') return error === undefined || error === null ? 'none' : typeof error;
  return typeName(read(error, 'name')) ?? typeName(read(read(error, 'constructor'), 'name')) ?? 'Error';
}

const typeName = (value) => (typeof value === 'string' && TYPE_NAME.test(value) ? value : undefined);

/** An error and what caused it. The SDK's retry error keeps the last try elsewhere than in `cause`. */
function linksOf(error) {
  const links = [];
  let link = error;
  while (link !== undefined && link !== null && links.length < MOST_LINKS) {
    links.push(link);
    link = typeof link === 'object' ? (read(link, 'lastError') ?? read(link, 'cause')) : undefined;
  }
  return links;
}

function first(links, look) {
  for (const link of links) {
    if (typeof link !== 'object') continue;
    // A provider's own code is in the body that the SDK has parsed; its message beside it stays where it is.
    const body = read(read(link, 'data'), 'error');
    const code = read(link, 'code') ?? read(body, 'code') ?? read(body, 'type');
    const found = look({ code, status: read(link, 'statusCode') ?? read(link, 'status') });
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * A word of a provider's or a library's. A sentence, an address or a key that stands in its place is none.
 * @param {unknown} value
 */
export function shortWord(value) {
  const word = typeof value === 'string' && value.length <= 64 ? identifier(value) : undefined;
  return word !== undefined && !isPersonal(word) ? word : undefined;
}

const statusOf = ({ status }) => (Number.isInteger(status) && status >= 400 && status <= 599 ? status : undefined);

function read(object, key) {
  try {
    return object?.[key];
  } catch {
    return undefined;
  }
}

/**
 * Whether an error is an abort or a time-out, or was caused by one.
 * @param {unknown} error
 * @returns {'AbortError' | 'TimeoutError' | undefined}
 */
export function interruptionOf(error) {
  const names = linksOf(error).map(typeOf);
  return names.find((name) => name === 'TimeoutError' || name === 'AbortError');
}
