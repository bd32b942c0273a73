// Several reasons to stop, as one signal that leaves no listener behind.

import { after } from "../timers.js";

/**
 * Do some work under several signals.
 *
 * @param signals whichever is aborted first ends it, with its reason.
 * @param work is given one signal that stands for them all.
 */
export async function linked<T>(
  signals: readonly (AbortSignal | undefined)[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const inner = new AbortController();
  const known = signals.filter((signal) => signal !== undefined);
  const listeners = known.map((signal) => {
    const aborted = (): void => inner.abort(signal.reason);
    if (signal.aborted) aborted();
    signal.addEventListener("abort", aborted, { once: true });
    return () => signal.removeEventListener("abort", aborted);
  });
  try {
    inner.signal.throwIfAborted();
    return await work(inner.signal);
  } finally {
    for (const remove of listeners) remove();
  }
}

/**
 * Await something for no longer than so many milliseconds; it goes on by itself when the time is up.
 *
 * @param promise what is awaited.
 * @param ms any number; Infinity for any time.
 * @param signal ends the waiting; the promise rejects with its reason.
 * @returns undefined when the time was up first.
 */
export function within<T>(promise: Promise<T>, ms: number, signal?: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const stop = ms === Infinity ? () => undefined : after(ms, () => done(() => resolve(undefined)));
    const aborted = (): void => done(() => reject(signal?.reason));
    const done = (settle: () => void): void => {
      stop();
      signal?.removeEventListener("abort", aborted);
      settle();
    };
    signal?.addEventListener("abort", aborted, { once: true });
    promise.then(
      (value) => done(() => resolve(value)),
      (error: unknown) => done(() => reject(error)),
    );
  });
}
