// Several reasons to stop, as one signal that leaves no listener behind.

import { onAbort } from "../aborts.js";
import { after } from "../timers.js";

/**
 * Stops once, for a reason. It is what an AbortSignal is, but for any number of listeners: a run may wait for thousands
 * of answers at a time, which Node takes for a leak.
 */
export class Stop {
  readonly #listeners = new Set<() => void>();
  #stopped: { readonly reason: unknown } | undefined;

  /** True when it has stopped. */
  get aborted(): boolean {
    return this.#stopped !== undefined;
  }

  /** Why it has stopped. */
  get reason(): unknown {
    return this.#stopped?.reason;
  }

  /** Stop; the first reason stands. */
  abort(reason: unknown): void {
    if (this.#stopped !== undefined) return;
    this.#stopped = { reason };
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }

  /** Throw the reason if it has stopped. */
  throwIfAborted(): void {
    if (this.#stopped !== undefined) throw this.#stopped.reason;
  }

  /** Call back when it stops; returns what ends that. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** Something that may stop. */
export type Stopping = AbortSignal | Stop;

/**
 * Do some work under several signals.
 *
 * @param signals whichever stops first ends it, with its reason.
 * @param work is given one signal that stands for them all.
 */
export async function linked<T>(
  signals: readonly (Stopping | undefined)[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const inner = new AbortController();
  const removals = signals
    .filter((signal) => signal !== undefined)
    .map((signal) => {
      const aborted = (): void => inner.abort(signal.reason);
      if (signal.aborted) aborted();
      return listening(signal, aborted);
    });
  try {
    inner.signal.throwIfAborted();
    return await work(inner.signal);
  } finally {
    for (const remove of removals) remove();
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
export function within<T>(promise: Promise<T>, ms: number, signal?: Stopping): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const stop = ms === Infinity ? () => undefined : after(ms, () => done(() => resolve(undefined)));
    const remove = signal === undefined ? () => undefined : listening(signal, () => done(() => reject(signal.reason)));
    const done = (settle: () => void): void => {
      stop();
      remove();
      settle();
    };
    promise.then(
      (value) => done(() => resolve(value)),
      (error: unknown) => done(() => reject(error)),
    );
  });
}

function listening(signal: Stopping, listener: () => void): () => void {
  return signal instanceof Stop ? signal.listen(listener) : onAbort(signal, listener);
}
