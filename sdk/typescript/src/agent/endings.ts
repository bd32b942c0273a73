// How a run ended, as the answer to the call that started it.

import { ExecutionCancelled, HandedBack, HoldshortError, KeyRefused, RunEnded, WrongScope } from "../errors.js";
import type { Execution } from "../runWire.js";
import type { Answered } from "./answers.js";
import { problem, stopping } from "./answers.js";
import { ExecutionTimedOut, said } from "./ends.js";
import type { RunState } from "./runState.js";

/** 200: its result. */
export function succeeded(executionId: string, status: string, result: unknown): Answered {
  return { status: 200, body: { execution_id: executionId, status, result } };
}

/** It did not succeed: it failed, was ended, or is not over and goes on elsewhere. */
export function notSucceeded(state: RunState, error: unknown): Answered {
  const known = { execution_id: state.executionId };
  const standing = { execution_status: state.status, ...known };
  if (error instanceof HandedBack) return stopping(error, known);
  if (state.abandoned.aborted) return stopping(undefined, known);
  if (error instanceof ExecutionTimedOut) return problem(500, error.code, said(error), standing);
  if (error instanceof RunEnded) return problem(409, error.code, error.message, standing);
  return problem(500, "run_failed", said(error), standing);
}

/** It did not start: it is over already, or the control plane would not have it. */
export function notStarted(error: unknown): Answered {
  if (error instanceof HandedBack) return stopping(error);
  if (error instanceof RunEnded) return problem(409, error.code, error.message, { execution_status: "cancelled" });
  if (!(error instanceof HoldshortError))
    return problem(500, "internal_error", error instanceof Error ? error.name : "Error");
  const { execution, ...details } = error.details;
  if (execution !== undefined) return asItEnded(execution as Execution);
  // The key that was refused is this agent's own, not its caller's.
  const ours = error instanceof KeyRefused || error instanceof WrongScope;
  return problem(ours ? 503 : (error.status ?? 503), error.code, error.message, details);
}

function asItEnded(standing: Execution): Answered {
  const { executionId, status } = standing;
  if (status === "succeeded") return succeeded(executionId, status, standing.result);
  const known = { execution_id: executionId, execution_status: status };
  if (status === "cancelled") {
    const more = { result: standing.result, ...known };
    return problem(409, ExecutionCancelled.code, `cancelled: ${standing.statusReason}`, more);
  }
  const code = status === "timeout" ? ExecutionTimedOut.code : "run_failed";
  const error = typeof standing.error === "string" ? standing.error : JSON.stringify(standing.error ?? status);
  return problem(500, code, error, known);
}
