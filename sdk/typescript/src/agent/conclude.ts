// A run's code from its first line to its reported end. What is no end of the run, only of this process, is not told.

import { BadRequest, ExecutionCancelled, RunEnded, StepMismatch } from "../errors.js";
import { type Report, reportStatus } from "../routes.js";
import { ExecutionTimedOut, said } from "./ends.js";
import { jsonText, NoJSON } from "./plain.js";
import type { RunState } from "./runState.js";
import { inScope } from "./scopes.js";
import { within } from "./signals.js";

const GRACE_MS = 5_000;
const MISMATCH = "step_mismatch";

type Outcome = { readonly value: unknown } | { readonly error: unknown };

/**
 * Let a run's code work, and report how it ends.
 *
 * @param state the run.
 * @param seconds its code may work; undefined for any time.
 * @param work the code.
 * @returns its result, as JSON made it. Rejects with what its code threw, or with what ended the run, whatever its code
 *   made of that.
 */
export async function conclude(state: RunState, seconds: number | undefined, work: () => unknown): Promise<unknown> {
  const outcome = await worked(state, seconds, work);
  state.close();
  if (state.end !== undefined) {
    await reportEnd(state, state.end);
    throw state.end;
  }
  if ("error" in outcome) return await failed(state, outcome.error);
  return await succeeded(state, outcome.value);
}

async function worked(state: RunState, seconds: number | undefined, work: () => unknown): Promise<Outcome> {
  const code = outcomeOf(state, work);
  state.clock.begin(seconds);
  const outcome = await state.untilEnded(code).catch((error: unknown) => ({ error }));
  if ("error" in outcome && outcome.error instanceof RunEnded) state.interrupt(outcome.error);
  if (state.end !== undefined) await settled(state, code);
  return outcome;
}

async function outcomeOf(state: RunState, work: () => unknown): Promise<Outcome> {
  try {
    state.check();
    return { value: await inScope({ state, branch: "", inStep: false }, work) };
  } catch (error) {
    return { error };
  }
}

/** An ended run's code may clean up; nobody can stop it, but nobody waits for it for ever. */
async function settled(state: RunState, code: Promise<Outcome>): Promise<void> {
  const all = Promise.allSettled([code, ...state.steps.busy]);
  const over = await within(all, GRACE_MS, state.abandoned).catch(() => undefined);
  if (over === undefined) {
    state.log.warn(`the code of ${state.executionId} goes on after its run has ended; let it look at run.signal`);
  }
}

async function reportEnd(state: RunState, end: RunEnded): Promise<void> {
  if (end instanceof ExecutionCancelled) await report(state, "cancelled", { error: end.message });
  else if (end instanceof ExecutionTimedOut) await report(state, "timeout", { error: said(end) });
  else if (end instanceof StepMismatch) await report(state, "failed", { error: said(end), reason: MISMATCH });
}

async function failed(state: RunState, error: unknown): Promise<never> {
  await report(state, "failed", { error: said(error) });
  throw error;
}

async function succeeded(state: RunState, value: unknown): Promise<unknown> {
  try {
    const result: unknown = JSON.parse(jsonText("the result of the run", value));
    await report(state, "succeeded", { result });
    state.steps.tellLeftOver();
    return result;
  } catch (error) {
    // A result that cannot be stored: a run that can never report would stay running for ever.
    if (error instanceof NoJSON || error instanceof BadRequest) return await failed(state, error);
    throw error;
  }
}

async function report(state: RunState, status: string, told: Report): Promise<void> {
  await state.notes.flush();
  const call = reportStatus(state.executionId, status, told);
  state.status = (await state.sendLast(call, { signal: state.abandoned })).status;
}
