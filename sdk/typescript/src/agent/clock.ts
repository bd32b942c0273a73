// The time limit of a run: only work counts.

import { after } from "../timers.js";

const LEAST_MS = 1;

/** A time limit that stands still while the run waits. */
export class Clock {
  readonly #up: () => void;
  #left: number | undefined;
  #since = 0;
  #stop: (() => void) | undefined;
  #waits = 0;

  /** @param up called when the time is up. */
  constructor(up: () => void) {
    this.#up = up;
  }

  /** Begin: the time is up after so many seconds of work; undefined for never. */
  begin(seconds: number | undefined): void {
    if (seconds === undefined) return;
    this.#left = seconds * 1000;
    if (this.#waits === 0) this.#run();
  }

  /** Let the time be up now, also while the run waits. */
  runOut(): void {
    this.end();
    this.#up();
  }

  /** Stand still for one more that waits. */
  stand(): void {
    this.#waits += 1;
    if (this.#stop === undefined || this.#left === undefined) return;
    this.#stop();
    this.#stop = undefined;
    this.#left = Math.max(LEAST_MS, this.#left - (performance.now() - this.#since));
  }

  /** One less waits; the time goes on with the last. */
  goOn(): void {
    this.#waits -= 1;
    if (this.#waits === 0) this.#run();
  }

  /** The run is over: the time is never up any more. */
  end(): void {
    this.#stop?.();
    this.#stop = undefined;
    this.#left = undefined;
  }

  #run(): void {
    if (this.#left === undefined) return;
    this.#since = performance.now();
    this.#stop = after(this.#left, () => this.runOut());
  }
}
