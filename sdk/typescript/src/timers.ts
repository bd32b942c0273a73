/** Time: pauses and deadlines of any length, that leave no timer behind. */

import { onAbort } from "./aborts.js";

/** The longest time that `setTimeout` takes; with more it would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A point in time by the clock that nobody sets, or never. */
export interface Deadline {
  /** Milliseconds until then, 0 when it has passed; Infinity for never. */
  left(): number;
  /** True when the time is up. */
  readonly passed: boolean;
}

/** The error that {@link withTimeout} ends work with. */
export class TimeIsUp extends Error {
  override readonly name = "TimeIsUp";
}

/**
 * A deadline so many milliseconds from now.
 *
 * Throws `RangeError` for NaN, which no clock reaches.
 *
 * @param ms any number, also over 2^31; null, undefined and Infinity for never
 */
export function deadline(ms: number | null | undefined): Deadline {
  if (Number.isNaN(ms)) throw new RangeError("a time in milliseconds must be a number");
  const until = performance.now() + (ms ?? Infinity);
  const left = (): number => Math.max(0, until - performance.now());
  return {
    left,
    get passed() {
      return left() <= 0;
    },
  };
}

/** How long to set the next timer when `left` milliseconds are left: never more than a timer can. */
export function nextTimer(left: number): number {
  return Math.min(Math.ceil(left), LONGEST_TIMER_MS);
}

/**
 * Call back after so many milliseconds, also after more than 2^31.
 *
 * @param ms any number; Infinity for never, which keeps the process running all the same
 * @param done called once
 * @returns ends it: no timer is left, and `done` is not called any more
 */
export function after(ms: number, done: () => void): () => void {
  const until = deadline(ms);
  let timer: ReturnType<typeof setTimeout>;
  const arm = (): void => {
    timer = setTimeout(() => (until.passed ? done() : arm()), nextTimer(until.left()));
  };
  arm();
  return () => clearTimeout(timer);
}

/**
 * Wait.
 *
 * @param ms milliseconds, any number; Infinity for as long as the signal lets it
 * @param signal ends it at once; the promise rejects with the signal's reason
 */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const stop = after(ms, () => {
      forget();
      resolve();
    });
    const forget = onAbort(signal, () => {
      stop();
      reject(signal?.reason);
    });
  });
}

/**
 * Do some work for no longer than so many milliseconds.
 *
 * @param ms any number; Infinity for any time
 * @param signal of the caller, which ends the work too
 * @param work is given a signal that is aborted by whichever comes first, and must end by it
 * @returns what the work returns; rejects with {@link TimeIsUp} when the time was up first, and with the caller's
 *   reason when that was first
 */
export async function withTimeout<T>(
  ms: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const inner = new AbortController();
  const forget = onAbort(signal, () => inner.abort(signal?.reason));
  const stop = after(ms, () => inner.abort(new TimeIsUp(`no end within ${Math.round(ms)} ms`)));
  try {
    return await work(inner.signal);
  } finally {
    stop();
    forget();
  }
}
