/** Pauses between tries that fail: longer each time, spread, ended early when somebody asks, and not without end. */
import { later } from './platform.js';

const DEFAULTS = { firstMs: 500, mostMs: 30_000, forMs: 15 * 60_000 };

/** What one batch after the other waits for. */
export class Backoff {
  #failures = 0;
  #since = 0;
  #options;
  /** @type {((force: boolean) => void) | undefined} */
  #wake;

  /** @param {{firstMs?: number, mostMs?: number, forMs?: number}} [options]  The first pause, the longest, and for how
   *   long one thing is tried. */
  constructor(options = {}) {
    this.#options = { ...DEFAULTS, ...options };
  }

  /** It went well, or is given up: the next failure is a first one. */
  reset() {
    this.#failures = 0;
  }

  /** One more failure. @returns {boolean} Whether it is to be tried again. */
  failed() {
    const now = globalThis.performance.now(); // the wall clock may jump
    if (!this.#failures) this.#since = now;
    this.#failures += 1;
    return now - this.#since <= this.#options.forMs;
  }

  /**
   * @param {number} [askedMs]  How long the other side asks to wait.
   * @returns {Promise<void>}
   */
  pause(askedMs) {
    const grown = Math.min(this.#options.mostMs, this.#options.firstMs * 2 ** (this.#failures - 1));
    const ms = askedMs ?? grown * (0.5 + Math.random() / 2); // spread: many processes must not come back at once
    return new Promise((resolve) => {
      const cancel = later(ms, resolve);
      this.#wake = (force) => {
        if (askedMs !== undefined && !force) return;
        cancel();
        resolve();
      };
    });
  }

  /** End the pause. @param {boolean} force  Also one that the other side asked for. */
  hurry(force) {
    this.#wake?.(force);
  }
}
