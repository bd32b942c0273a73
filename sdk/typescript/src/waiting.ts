/** Waiting for a decision: held calls, for as long as it takes, through restarts of the control plane. */

import type { Sender } from "./core.js";
import { ConnectionFailed, Refused, Unavailable, WaitTimeout } from "./errors.js";
import { resultOf, type ApprovalResult } from "./result.js";
import { getApprovalStatus, waitForApprovals } from "./routes.js";
import { deadline, sleep, type Deadline } from "./timers.js";
import type { ApprovalStatus } from "./wire.js";

// What stands between often cuts a call that is silent for a minute.
const HOLD_MS = 50_000;
const PACE_MS = 1_000;
const TIMES_REFUSED = 3;

/** Which approval to wait for, and how long. */
export interface WaitOptions {
  /** Picks one of the execution's questions; its newest when absent. */
  approvalRequestId?: string | undefined;
  /** Milliseconds to wait, also more than 2^31; as long as it takes when absent. */
  timeoutMs?: number | undefined;
  /** Ends the wait at once; the promise rejects with the signal's reason, and the approval stays pending. */
  signal?: AbortSignal | undefined;
  /** When given, the execution must be this node's. */
  nodeId?: string | undefined;
}

/**
 * Wait for the decision of an approval that was asked.
 *
 * It is looked up once; what is waited for then is that approval, also when other questions are asked meanwhile.
 *
 * @returns what stands at the end; rejects with `WaitTimeout` when the time is up, `NotFound` when the execution has
 *   not asked that, `ConnectionFailed` when the time was up before the control plane could say how it stands
 */
export async function waitForApproval(
  sender: Sender,
  executionId: string,
  { approvalRequestId, timeoutMs, signal, nodeId }: WaitOptions,
): Promise<ApprovalResult> {
  const until = deadline(timeoutMs);
  const look = getApprovalStatus(executionId, { approvalRequestId, nodeId });
  const first = await sender.send(look, { patienceMs: patience(until), signal });
  const standing = first.status === "pending" ? await settled(sender, first.approvalId, until, signal) : first;
  return resultOf(standing, standing.executionId);
}

/** Milliseconds to go on trying until then; null for any. */
export function patience(until: Deadline): number | null {
  const left = until.left();
  return Number.isFinite(left) ? left : null;
}

async function settled(
  sender: Sender,
  approvalId: string,
  until: Deadline,
  signal: AbortSignal | undefined,
): Promise<ApprovalStatus> {
  const refused = new Refusals();
  while (!until.passed) {
    const pace = deadline(PACE_MS);
    const call = waitForApprovals([approvalId], Math.min(HOLD_MS, until.left()) / 1000);
    try {
      const { approvals } = await sender.send(call, { patienceMs: patience(until), signal });
      const found = approvals.find((approval) => approval.approvalId === approvalId);
      if (found) return found;
      refused.over();
    } catch (error) {
      refused.count(error);
    }
    // A control plane that stops, or has too many waits, answers at once; that must not become a busy loop.
    await sleep(Math.min(pace.left(), until.left()), signal);
  }
  throw new WaitTimeout(undefined, { details: { approval_id: approvalId } });
}

/** Which errors a wait goes on after. */
class Refusals {
  #times = 0;

  /** An answer came. */
  over(): void {
    this.#times = 0;
  }

  /**
   * Go on after an error of what is away for a while, and after two others in sequence: one such answer may be a
   * server's that only starts, or a proxy's. Throws the error that the wait must end with.
   */
  count(error: unknown): void {
    if (error instanceof ConnectionFailed || error instanceof Unavailable) return;
    this.#times += 1;
    if (!(error instanceof Refused) || this.#times === TIMES_REFUSED) throw error;
  }
}
