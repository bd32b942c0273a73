// Wakes who waits for it, and stays rung until it is silenced.

import { type Stopping, within } from "./signals.js";

/** A bell. */
export class Bell {
  #rung!: Promise<void>;
  #ring!: () => void;
  /** True while it is rung. */
  isRung = false;

  constructor() {
    this.silence();
  }

  /** Wake everybody who waits, and who comes until it is silenced. */
  ring(): void {
    this.isRung = true;
    this.#ring();
  }

  /** Wake nobody any more. */
  silence(): void {
    this.isRung = false;
    this.#rung = new Promise((resolve) => {
      this.#ring = resolve;
    });
  }

  /** Wake those who wait now, and nobody else. */
  strike(): void {
    this.#ring();
    this.silence();
  }

  /** Wait until it is rung, so many milliseconds at most. */
  async heard(ms = Infinity, signal?: Stopping): Promise<void> {
    await within(this.#rung, ms, signal);
  }
}
