import { onAbort } from "./aborts.js";

/** Lets so many in at a time, in the order in which they came. */
export class Slots {
  #free: number;
  readonly #waiting = new Set<() => void>();

  /** @param count how many are let in at a time */
  constructor(count: number) {
    this.#free = count;
  }

  /**
   * Wait for a slot.
   *
   * @param signal gives up the place at once; the promise rejects with the signal's reason
   * @returns gives the slot back
   */
  async enter(signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#turn(signal);
    return () => this.#leave();
  }

  #turn(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const turn = (): void => {
        forget();
        resolve();
      };
      const forget = onAbort(signal, () => {
        this.#waiting.delete(turn);
        reject(signal?.reason);
      });
      this.#waiting.add(turn);
    });
  }

  #leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
