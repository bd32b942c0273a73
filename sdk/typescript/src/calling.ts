/** Waiting for the end of a run that was called: held calls under one key, until it is over. */

import type { Sender } from "./core.js";
import { getExecution, heldExecute, newKey } from "./routes.js";
import { deadline, sleep, type Deadline } from "./timers.js";
import type { Executed, Execution } from "./wire.js";

// What stands between often cuts a call that is silent for a minute.
const HOLD_MS = 50_000;
// The first call is short, so that it is soon known that the run was made; from then on no outage is too long.
const FIRST_HOLD_MS = 1_000;
const PACE_MS = 1_000;
const WAIT_S = 60;

/** How a reasoner is called. */
export interface ExecuteOptions {
  /** Seconds to wait for the end, 60 when absent; null for as long as it takes. */
  waitSeconds?: number | null | undefined;
  /** The same again joins the run that it started before. Retries of one call always do. */
  idempotencyKey?: string | undefined;
  /** Ends the wait at once; the promise rejects with the signal's reason, and the run goes on. */
  signal?: AbortSignal | undefined;
}

/** A sender with the time that it tries a call for. */
export interface PatientSender extends Sender {
  readonly patienceMs: number | null;
}

/** Let a node run a reasoner and wait for its end; `ApprovalClient.execute` says the rest. */
export async function execute(
  sender: PatientSender,
  nodeId: string,
  reasoner: string,
  input: unknown,
  { waitSeconds = WAIT_S, idempotencyKey = newKey(), signal }: ExecuteOptions,
): Promise<Execution> {
  const until = deadline(waitSeconds === null ? null : 1000 * waitSeconds);
  let stands: Executed | undefined;
  while (stands === undefined || !(stands.final || until.passed)) {
    const pace = deadline(PACE_MS);
    const holdMs = Math.min(until.left(), stands ? HOLD_MS : FIRST_HOLD_MS);
    const call = heldExecute(nodeId, reasoner, input, idempotencyKey, holdMs / 1000);
    const patienceMs = stands ? longer(sender.patienceMs, until) : sender.patienceMs;
    stands = await sender.send(call, { patienceMs, signal });
    // A control plane that stops, or has too many waits, answers at once; that must not become a busy loop.
    if (!stands.final) await sleep(Math.min(pace.left(), until.left()), signal);
  }
  return sender.send(getExecution(stands.executionId), { signal });
}

function longer(own: number | null, until: Deadline): number | null {
  const left = until.left();
  return own === null || !Number.isFinite(left) ? null : Math.max(own, left);
}
