/** Who is to be told when a signal is aborted: one listener a signal, however many wait by it. */

const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Call back when a signal is aborted that is not yet.
 *
 * One signal may end thousands of calls; as listeners of its own they would be taken for a leak.
 *
 * @param signal undefined is never aborted
 * @param aborted called once
 * @returns ends it: nothing is called any more
 */
export function onAbort(signal: AbortSignal | undefined, aborted: () => void): () => void {
  if (signal === undefined) return () => undefined;
  const told = waiting.get(signal) ?? listening(signal);
  // Each in a wrapping of its own, so that the same function given twice is called twice.
  const tell = (): void => aborted();
  told.add(tell);
  return () => told.delete(tell);
}

function listening(signal: AbortSignal): Set<() => void> {
  const told = new Set<() => void>();
  waiting.set(signal, told);
  const tellAll = (): void => {
    waiting.delete(signal);
    for (const tell of [...told]) tell();
  };
  signal.addEventListener("abort", tellAll, { once: true });
  return told;
}
