/**
 * The bounded queue between a run and the place where its records go: batches, retries, and a count of what is lost.
 *
 * Nothing in here throws into the host, waits on its way, keeps its process alive or leaves a rejection unhandled.
 * How a batch is delivered is the sink's (`sinks.js`, `file-sink.js`).
 */
import { attempt } from './attempt.js';
import { Backoff } from './backoff.js';
import { asJson, bodyOf, entryOf } from './entries.js';
import { codeOf, complain, meanwhile, platform, soon } from './platform.js';

/**
 * @typedef {Record<string, any>} Plain  A record with the keys of the wire, its values clean.
 *
 * @typedef {object} Sink
 * @property {(record: Plain) => void} accept  Takes a record; never throws, never waits.
 * @property {() => Promise<void>} flush  Settles when what was accepted before is delivered or given up, or after a
 *   bounded time; never rejects.
 * @property {() => Promise<void>} close  A flush; what comes after it is only counted as lost.
 * @property {() => Stats} stats
 *
 * @typedef {{accepted: number, delivered: number, dropped: number, waiting: number}} Stats  Since the start;
 *   `accepted` is the sum of the other three.
 *
 * @typedef {object} Answer  What became of a batch. No answer: all of it is delivered.
 * @property {'retry' | 'give_up' | 'halve'} rest  What to do with what is not done.
 * @property {number} [done]  How many are delivered, from the start of the batch.
 * @property {number} [afterMs]  When to try again, as the receiver says.
 * @property {string} [why]  A code for people: a status, `ECONNREFUSED`.
 *
 * @typedef {object} Delivery  What a sink brings.
 * @property {string} name  Whose records they are, in what is said to people, as `httpSink`.
 * @property {(bodies: any[], signal: AbortSignal) => Answer | void | Promise<Answer | void>} deliver  A throw: retry.
 * @property {(record: Plain) => any} [encode]  Default: JSON, without a line feed.
 * @property {(bodies: any[]) => void} [deliverAtEnd]  What can still be done at once while the process ends.
 * @property {() => void | Promise<void>} [onClosed]
 * @property {'retry' | 'give_up'} [late]  What a delivery that takes too long means. Default: retry.
 * @property {number} [maxBatch]  Records. Default: 200.
 * @property {number} [maxBytes]  Characters of a batch. Default: 256 Ki.
 *
 * @typedef {object} Limits  What a host may set.
 * @property {number} [maxQueue]  Records that may wait. Default: 10,000; what comes then is lost and counted.
 * @property {number} [timeoutMs]  The longest that a delivery takes. Default: 10 s.
 * @property {number} [flushMs]  The longest that a flush takes. Default: 5 s.
 * @property {{firstMs?: number, mostMs?: number, forMs?: number}} [retry]  The first pause (0.5 s), the longest (30 s),
 *   and how long one batch is tried (15 min).
 * @property {(delivery: Promise<void>) => void} [waitUntil]  Asks an edge runtime to stay until the delivery is over.
 */

const LAST_TRY_MS = 2000;
const BREATH = 50; // records that are encoded in one go, in less than a millisecond
const DEFAULTS = {
  encode: asJson,
  late: /** @type {'retry' | 'give_up'} */ ('retry'),
  maxQueue: 10_000,
  maxBatch: 200,
  maxBytes: 256 * 1024,
  timeoutMs: 10_000,
  flushMs: 5000,
};

/** One queue with one delivery at a time. */
export class Outbox {
  /** @type {import('./entries.js').Entry[]} */
  #queue = [];
  #entered = 0;
  #gone = 0; // of those that entered
  #delivered = 0;
  #dropped = 0;
  #unsaid = 0; // lost, and no later record says so yet
  #limit;
  #busy = false;
  #held = false;
  #triedAtEnd = -1;
  #options;
  #backoff;
  /** @type {Set<{upTo: number, finish: () => void}>} */
  #waiters = new Set();
  /** @type {Promise<void> | undefined} */
  #closing;
  /** @type {(() => void) | undefined} */
  #leave;

  /** @param {Delivery & Limits} options */
  constructor(options) {
    this.#options = { ...DEFAULTS, ...given(options) };
    this.#backoff = new Backoff(given(options.retry ?? {}));
    this.#limit = this.#options.maxBatch;
  }

  /** @param {Plain} record */
  accept(record) {
    try {
      if (this.#closing) return this.#lose(1, 'came after it was closed');
      if (this.#queue.length >= this.#options.maxQueue) return this.#lose(1, 'found its queue full');
      this.#enter(entryOf(record, this.#unsaid));
    } catch {
      this.#lose(1, 'are no records'); // or the runtime has no random numbers
    }
  }

  /** @returns {Stats} */
  stats() {
    const [delivered, dropped, waiting] = [this.#delivered, this.#dropped, this.#queue.length];
    return { accepted: delivered + dropped + waiting, delivered, dropped, waiting };
  }

  /**
   * @param {number} [ms]  At most so long.
   * @param {boolean} [force]  Try again now even where the receiver asked for a pause.
   * @returns {Promise<void>}
   */
  flush(ms = this.#options.flushMs, force = false) {
    this.#backoff.hurry(force);
    if (this.#gone >= this.#entered) return Promise.resolve();
    return new Promise((resolve) => {
      const finish = () => {
        cancel();
        this.#waiters.delete(waiter);
        resolve();
      };
      const waiter = { upTo: this.#entered, finish };
      const cancel = meanwhile(ms, finish);
      this.#waiters.add(waiter);
    });
  }

  /** @returns {Promise<void>} */
  close() {
    this.#closing ??= this.flush(this.#options.flushMs, true).then(() => this.#end());
    return this.#closing;
  }

  async #end() {
    this.#drop(0, this.#queue.length, 'could not be delivered before it was closed');
    this.#backoff.hurry(true);
    try {
      await this.#options.onClosed?.();
    } catch (error) {
      complain(`${this.#options.name} did not close well (${codeOf(error)}).`);
    }
  }

  /** @param {import('./entries.js').Entry} entry */
  #enter(entry) {
    this.#queue.push(entry);
    this.#unsaid = 0;
    this.#entered += 1;
    if (!this.#busy) {
      this.#busy = true;
      this.#leave ??= platform.onExit?.({ idle: () => this.#atIdle(), last: () => this.#atEnd() });
      soon(() => platform.detached(() => void this.#run()));
    }
    if (this.#options.waitUntil && !this.#held) this.#hold(this.#options.waitUntil);
  }

  /** @param {(delivery: Promise<void>) => void} waitUntil */
  #hold(waitUntil) {
    this.#held = true;
    const delivery = this.flush().then(() => {
      this.#held = false;
    });
    try {
      waitUntil(delivery);
    } catch {
      complain(`the waitUntil of ${this.#options.name} throws: records may be lost when the runtime stops.`);
    }
  }

  async #run() {
    while (this.#queue.length) {
      await this.#turn();
      await breath();
    }
    this.#busy = false;
    this.#leave?.();
    this.#leave = undefined;
  }

  async #turn() {
    try {
      const bodies = await this.#batch();
      if (bodies.length) await this.#settle(bodies.length, await attempt(bodies, this.#options));
    } catch {
      this.#drop(0, 1, 'could not be handled'); // a mistake of ours must cost a record, not turn for ever
    }
  }

  /** What to deliver next. Entries that cannot be encoded are dropped on the way. */
  async #batch() {
    const { encode, maxBytes } = this.#options;
    const bodies = [];
    for (let size = 0; bodies.length < Math.min(this.#limit, this.#queue.length); ) {
      const made = bodyOf(this.#queue[bodies.length], encode);
      const body = made instanceof Promise ? await made : made;
      size += body?.length ?? 0;
      if (body === undefined) this.#drop(bodies.length, 1, 'cannot be written as JSON of a bounded length');
      else if (bodies.length && size > maxBytes) break;
      else bodies.push(body);
      if (bodies.length % BREATH === 0) await breath();
    }
    return bodies;
  }

  /** @param {number} tried @param {Answer | void} answer */
  async #settle(tried, answer) {
    const { rest, done = 0, afterMs, why } = answer ?? { rest: 'retry', done: tried };
    if (done) this.#deliver(done);
    const left = tried - done;
    if (!left || !this.#queue.length) return;
    if (rest === 'give_up') this.#drop(0, left, 'were refused');
    else if (rest === 'halve' && left === 1) this.#drop(0, left, 'are too large for the receiver');
    else if (rest === 'halve') this.#limit = Math.ceil(left / 2);
    else if (!this.#backoff.failed()) this.#drop(0, left, 'could not be delivered for too long');
    else await this.#wait(why, afterMs);
  }

  /** @param {string | undefined} why @param {number | undefined} afterMs */
  #wait(why, afterMs) {
    complain(`${this.#options.name} cannot deliver (${why ?? 'unknown'}). Records wait, and it tries again.`);
    return this.#backoff.pause(afterMs);
  }

  /** @param {number} number  Of the first entries. */
  #deliver(number) {
    this.#delivered += this.#take(0, number).length;
    this.#backoff.reset();
    this.#limit = Math.min(this.#options.maxBatch, this.#limit * 2);
  }

  /** @param {number} start @param {number} number @param {string} why */
  #drop(start, number, why) {
    const lost = this.#take(start, number);
    if (!lost.length) return;
    this.#backoff.reset();
    this.#unsaid += lost.reduce((sum, entry) => sum + entry.dropped, 0);
    this.#lose(lost.length, why);
  }

  /** @param {number} number @param {string} why */
  #lose(number, why) {
    this.#dropped += number;
    this.#unsaid += number;
    complain(`records for ${this.#options.name} ${why} and are lost. They are counted.`);
  }

  /** @param {number} start @param {number} number */
  #take(start, number) {
    const taken = this.#queue.splice(start, number);
    this.#gone += taken.length;
    for (const waiter of this.#waiters) if (this.#gone >= waiter.upTo) waiter.finish();
    return taken;
  }

  /** The process has nothing more to do. What can be done at once is done at its end; else there is one more try. */
  #atIdle() {
    if (this.#options.deliverAtEnd || this.#triedAtEnd === this.#entered) return;
    this.#triedAtEnd = this.#entered;
    this.#options.timeoutMs = Math.min(this.#options.timeoutMs, LAST_TRY_MS);
    this.#backoff.hurry(true);
  }

  /** The process ends, and only what is done at once still counts. */
  #atEnd() {
    const { deliverAtEnd, encode, name } = this.#options;
    try {
      const bodies = this.#queue
        .map((entry) => bodyOf(entry, encode))
        .filter((body) => body && !(body instanceof Promise));
      if (deliverAtEnd) deliverAtEnd(bodies);
      else if (bodies.length)
        complain(`${bodies.length} records for ${name} could not be sent before the process ended.`);
    } catch (error) {
      complain(`records for ${name} could not be written when the process ended (${codeOf(error)}).`);
    }
  }
}

/** Lets the host's work come in between. @returns {Promise<void>} */
function breath() {
  return new Promise((resolve) => soon(resolve));
}

/** @template {object} T @param {T} options @returns {T} Without what is undefined, so that a default holds there. */
function given(options) {
  return /** @type {T} */ (Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)));
}
