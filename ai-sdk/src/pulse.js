// The runs that go on, and the heartbeat that renews their leases while something moves them.
import { quietly } from './guard.js';
import { platform } from './platform.js';

const BEAT_MS = 10_000; // the shortest time between two progress records
const OF_LEASE = 3; // a run speaks three times in a lease, so that one lost record does not end it

export class Pulse {
  #runs = new Set();
  #stop = undefined;
  #forget = undefined;

  /** @param {import('./run.js').Run} run */
  add(run) {
    this.#runs.add(run);
    this.#stop ??= platform.every?.(BEAT_MS, () => this.beat());
    this.#forget ??= platform.onExit?.({ idle() {}, last: () => this.died() });
  }

  /** @param {import('./run.js').Run} run */
  delete(run) {
    this.#runs.delete(run);
    if (this.#runs.size > 0) return;
    this.#stop?.();
    this.#forget?.();
    this.#stop = undefined;
    this.#forget = undefined;
  }

  /** The process ends with these still going on: an uncaught error, `process.exit`, or a stream that nobody reads. */
  died() {
    for (const run of this.#runs) quietly(() => run.died());
  }

  /** A stream that nobody asks for more does not go on, however alive the process is. */
  beat() {
    for (const run of this.#runs) {
      if (run.isDriven()) quietly(() => run.progress('heartbeat', (run.mine.leaseS * 1000) / OF_LEASE));
    }
  }
}
