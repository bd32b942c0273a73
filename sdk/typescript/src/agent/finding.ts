// Which approval is meant by an id that was asked under before.

import { AmbiguousRequestId, NotFound } from "../errors.js";
import { getApprovalStatus, listApprovals } from "../routes.js";
import type { Deadline } from "../timers.js";
import type { Approval, ApprovalStatus } from "../wire.js";
import { patienceUntil } from "./asking.js";
import type { Session } from "./session.js";

const PAGE = 200;

/** What is looked for. */
export interface Wanted {
  readonly nodeId: string;
  readonly approvalRequestId: string;
  /** The run that asked; undefined to look through the node's. */
  readonly executionId: string | undefined;
}

/**
 * The approval that is meant: the execution's newest under the id, else the node's.
 *
 * @throws {NotFound} nobody asked under this id.
 * @throws {AmbiguousRequestId} several could be meant; `details.approvals` lists them.
 * @throws {ConnectionFailed} the control plane was not reached until then.
 */
export async function find(
  session: Session,
  wanted: Wanted,
  until: Deadline,
  signal: AbortSignal | undefined,
): Promise<ApprovalStatus> {
  const { executionId, approvalRequestId } = wanted;
  if (executionId !== undefined) {
    const options = { patienceMs: patienceUntil(until), signal };
    return await session.sender.send(getApprovalStatus(executionId, { approvalRequestId }), options);
  }
  // An id may stand for a million runs that are over; those that wait are few.
  const pending = await listed(session, wanted, "pending", until, signal);
  return meant(wanted, pending.length > 0 ? pending : await listed(session, wanted, undefined, until, signal));
}

function meant(wanted: Wanted, found: readonly Approval[]): ApprovalStatus {
  const [first] = found;
  if (first === undefined) {
    const told = `no approval was asked under ${JSON.stringify(wanted.approvalRequestId)} by ${wanted.nodeId}`;
    throw new NotFound(told, { code: "no_approval_request" });
  }
  const pending = found.filter((approval) => !approval.final);
  if (pending.length === 1) return pending[0] ?? first;
  if (pending.length === 0 && executionsOf(found) === 1) {
    return found.reduce((newest, approval) => (approval.round > newest.round ? approval : newest));
  }
  const approvals = found.map(({ approvalId, executionId, round, status }) => ({
    approval_id: approvalId,
    execution_id: executionId,
    round,
    status,
  }));
  throw new AmbiguousRequestId(null, { details: { approvals } });
}

/** Those that match, page by page until it is clear whether one or several executions asked. */
async function listed(
  session: Session,
  { nodeId, approvalRequestId }: Wanted,
  status: string | undefined,
  until: Deadline,
  signal: AbortSignal | undefined,
): Promise<Approval[]> {
  const found: Approval[] = [];
  let cursor: string | undefined;
  do {
    const which = { nodeId, approvalRequestId, status, limit: PAGE, cursor };
    const page = await session.sender.send(listApprovals(which), { patienceMs: patienceUntil(until), signal });
    found.push(...page.approvals);
    cursor = page.nextCursor ?? undefined;
  } while (cursor && executionsOf(found) <= 1);
  return found;
}

function executionsOf(found: readonly Approval[]): number {
  return new Set(found.map((approval) => approval.executionId)).size;
}
