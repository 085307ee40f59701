// Who reads a stream, and whether they went away.
//
// The SDK says nothing when a reader leaves. Here the streams of a result are handed on chunk by chunk, only when asked
// for, so that the end, a break and a cancel can be seen. Not here: the SDK's callbacks (calls.js).
import { quietly } from './guard.js';
import { soon } from './platform.js';

/** Getters that make a new stream out of the result; the others are built from these. */
const GETTERS = ['stream', 'fullStream', 'partialOutputStream', 'elementStream'];

/** A result that nobody can reach any more will never be read: its run is over. */
const dropped =
  globalThis.FinalizationRegistry && new globalThis.FinalizationRegistry((readers) => readers.forgotten());

/** @type {WeakMap<object, Readers>} */
const readersOf = new WeakMap();

/** By prototype: the same functions for every result, or the engine takes each for an object of a shape of its own. */
const accessors = new WeakMap();

/**
 * Watches the streams of a result of `streamText`. The result stays the same object.
 * @param {any} result @param {import('./run.js').Run} run
 */
export function watchStreams(result, run) {
  const readers = new Readers(run);
  run.readers = readers;
  readersOf.set(result, readers);
  const proto = Object.getPrototypeOf(result);
  if (!accessors.has(proto)) accessors.set(proto, accessorsOf(proto));
  Object.defineProperties(result, accessors.get(proto));
  dropped?.register(result, readers);
}

function accessorsOf(proto) {
  const found = {};
  for (const name of GETTERS) {
    const getter = getterOf(proto, name);
    if (getter !== undefined) found[name] = { configurable: true, enumerable: false, get: watching(getter) };
  }
  return found;
}

function watching(getter) {
  return function get() {
    const stream = getter.call(this);
    return readersOf.get(this)?.watch(stream, this) ?? stream;
  };
}

function getterOf(object, name) {
  for (let owner = object; owner !== null; owner = Object.getPrototypeOf(owner)) {
    const found = Object.getOwnPropertyDescriptor(owner, name);
    if (found !== undefined) return found.get;
  }
  return undefined;
}

/** All who read one result. */
class Readers {
  pending = 0;
  #run;
  #open = 0;
  #wasRead = false;
  #sawFinish = false;
  #watched = new WeakSet();

  constructor(run) {
    this.#run = run;
  }

  /**
   * The same stream, seen. It asks its source only when it is asked: nothing is read ahead.
   * @param {ReadableStream} source @param {any} result held by the stream, so that a result that is read is not dropped
   */
  watch(source, result) {
    if (!(source instanceof ReadableStream) || this.#watched.has(source)) return source;
    const watched = this.#passOn(source.getReader(), result);
    // The SDK's streams can be iterated in its own way, which cancels them when a loop is left.
    if (Object.hasOwn(source, Symbol.asyncIterator)) watched[Symbol.asyncIterator] = source[Symbol.asyncIterator];
    this.#watched.add(watched);
    this.#open++;
    return watched;
  }

  #passOn(reader, result) {
    const branch = { isOver: false, result };
    return new ReadableStream(
      {
        pull: (controller) => this.#pull(reader, controller, branch),
        cancel: (reason) => {
          this.#left(branch);
          return reader.cancel(reason);
        },
      },
      { highWaterMark: 0 },
    );
  }

  async #pull(reader, controller, branch) {
    this.pending++;
    this.#wasRead = true;
    try {
      const { done, value } = await reader.read();
      // A cancelled stream answers that it is done to whoever still waits, and takes no more chunks.
      if (branch.isOver) return;
      if (done) this.#ended(controller, branch);
      else this.#pass(value, controller);
    } catch (error) {
      if (!branch.isOver) this.#broke(error, controller, branch);
    } finally {
      this.pending--;
    }
  }

  #pass(value, controller) {
    quietly(() => this.#note(value));
    controller.enqueue(value);
  }

  /** The parts of a stream say of an agent's what only a whole agent can be asked by callbacks. */
  #note(part) {
    if (part?.type === 'finish') this.#sawFinish = true;
    if (!this.#run.call.hearsParts) return;
    if (part?.type === 'error') this.#run.streamFailed(part.error);
    if (part?.type === 'abort') this.#run.stop({ how: 'aborted', reason: this.#run.abortReason() }, 'event_stream');
  }

  #ended(controller, branch) {
    this.#over(branch);
    this.#stop(this.#ending());
    controller.close();
  }

  /** Whoever reads only a stream of objects sees no part that says so. */
  #ending() {
    const isAborted = this.#run.call.hearsParts && !this.#sawFinish && this.#run.isAborted();
    return isAborted ? { how: 'aborted', reason: this.#run.abortReason() } : { how: 'returned' };
  }

  #broke(error, controller, branch) {
    this.#over(branch);
    this.#stop({ how: 'threw', error });
    controller.error(error);
  }

  #over(branch) {
    branch.isOver = true;
    this.#open--;
  }

  /** A reader left. Another may go on, or come at once (`consumeStream`), so the answer waits for the next turn. */
  #left(branch) {
    if (branch.isOver) return;
    this.#over(branch);
    soon(() => {
      if (this.#open > 0) return;
      const how = this.#sawFinish ? 'returned' : 'cancelled';
      this.#stop({ how, wasRead: this.#wasRead });
    });
  }

  forgotten() {
    const how = this.#sawFinish ? 'returned' : 'dropped';
    this.#stop({ how, wasRead: this.#wasRead }, 'sweeper');
  }

  #stop(ending, boundary = 'event_stream') {
    quietly(() => this.#run.stop(ending, boundary));
  }
}
