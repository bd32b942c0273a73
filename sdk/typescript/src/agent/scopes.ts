// Which run the code belongs to that runs now, and where in it.

import { AsyncLocalStorage } from "node:async_hooks";
import type { RunState } from "./runState.js";

/** Where in a run some code is. */
export interface Scope {
  readonly state: RunState;
  /** Path of the branch, "" outside one. */
  readonly branch: string;
  /** True inside a step's function: what is a step there is part of that one. */
  readonly inStep: boolean;
}

const scopes = new AsyncLocalStorage<Scope>();

/** Where the code is that calls this; undefined outside a run. */
export function scopeHere(): Scope | undefined {
  return scopes.getStore();
}

/** Where the code is in this run: what was called from elsewhere is outside its branches. */
export function scopeOf(state: RunState): Scope {
  const here = scopes.getStore();
  return here?.state === state ? here : { state, branch: "", inStep: false };
}

/** Do some work there. */
export function inScope<T>(scope: Scope, work: () => T): T {
  return scopes.run(scope, work);
}
