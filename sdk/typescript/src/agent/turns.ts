// Which calls are made in one go, with nothing else running between them: their order is that of the code.

import { createHook, executionAsyncId } from "node:async_hooks";

/** One stretch of code without an await. */
export type Turn = object;

let tracked = false;
let current: { readonly turn: Turn; readonly within: number } | undefined;

/**
 * Let turns be told apart that follow each other without a break, as those of tasks that awaited one promise do. Newer
 * versions of Node number them only while somebody listens.
 */
export function tellTurnsApart(): void {
  if (tracked) return;
  tracked = true;
  createHook({ init: () => undefined }).enable();
}

/** The turn that the caller runs in; the same object for all calls of one turn. */
export function turnHere(): Turn {
  const within = executionAsyncId();
  if (current?.within === within) return current.turn;
  const turn = {};
  current = { turn, within };
  queueMicrotask(() => {
    if (current?.turn === turn) current = undefined;
  });
  return turn;
}

/** Return when all that can go on by itself has done so. */
export function nextRound(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
