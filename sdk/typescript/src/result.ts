/** What a person, or the deadline, said. */

import { Refused } from "./errors.js";
import { DECISIONS, type Answer, type Decision } from "./wire.js";

/** A result whose decision is known; see {@link ApprovalResult}. */
export interface ResultWith<D extends Decision> {
  readonly decision: D;
  /** The comment, "" when there was none; with request_changes it says which changes are wanted. */
  readonly feedback: string;
  /** The execution that asked. */
  readonly executionId: string;
  /** The id it was asked under. */
  readonly approvalRequestId: string;
  /** The control plane's own id of it. */
  readonly approvalId: string;
  /** The how-many-eth ask under `approvalRequestId`. */
  readonly round: number;
  /** Exactly what the sender put into its `response`; null when there was none. */
  readonly data: unknown;
  /** What was filled in, where it was asked with a form; null unless it is approved. */
  readonly values: D extends "approved" ? unknown : null;
  /** The payload as it was asked about, where it was editable; null unless it is approved. */
  readonly original: D extends "approved" ? unknown : null;
  /** True only for approved. */
  readonly approved: D extends "approved" ? true : false;
  /** True when a person said no; the execution is cancelled, and the code may clean up. */
  readonly rejected: D extends "rejected" ? true : false;
  /** True when changes are wanted; asking again opens the next round. */
  readonly changesRequested: D extends "request_changes" ? true : false;
  /** True when the deadline passed unanswered; that is nobody's no, and never a yes. */
  readonly expired: D extends "expired" ? true : false;
  /** True when the question was taken back before anybody answered. */
  readonly withdrawn: D extends "withdrawn" ? true : false;
}

/**
 * What a person, or the deadline, said: a union that narrows on `decision` (and on `approved` and the other flags).
 *
 * It is an object, and every object is true in JavaScript: `if (result)` is true after a rejection too. Ask
 * `result.approved`. Conversions to a number or for a comparison throw `TypeError`.
 */
export type ApprovalResult = { [D in Decision]: ResultWith<D> }[Decision];

/** What a result is made of. */
export interface ResultParts {
  decision: string;
  feedback: string;
  executionId: string;
  approvalRequestId: string;
  approvalId: string;
  round: number;
  data: unknown;
}

/** A final approval, as a result is made from it. */
export interface Standing {
  status: string;
  approvalRequestId: string;
  approvalId: string;
  round: number;
  response: Answer | null;
}

class Result {
  constructor(parts: ResultParts) {
    const { decision } = parts;
    const filled = decision === "approved" ? filledIn(parts.data) : {};
    Object.assign(this, parts, {
      values: filled["values"] ?? null,
      original: filled["original"] ?? null,
      approved: decision === "approved",
      rejected: decision === "rejected",
      changesRequested: decision === "request_changes",
      expired: decision === "expired",
      withdrawn: decision === "withdrawn",
    });
    Object.freeze(this);
  }

  [Symbol.toPrimitive](hint: string): string {
    if (hint === "string") return "[object ApprovalResult]";
    throw new TypeError("an ApprovalResult has no truth value; ask result.approved");
  }
}

function filledIn(data: unknown): Record<string, unknown> {
  const isObject = typeof data === "object" && data !== null && !Array.isArray(data);
  return isObject && Object.hasOwn(data, "values") ? { ...data } : {};
}

/**
 * A result from its parts. Throws `Refused` (code `unexpected_reply`) for a decision that is none of the known words,
 * which is an error and never a decision.
 */
export function resultFrom(parts: ResultParts): ApprovalResult {
  if (!DECISIONS.has(parts.decision)) {
    throw new Refused(`unknown approval status "${parts.decision}"`, { code: "unexpected_reply" });
  }
  const { decision, feedback, executionId, approvalRequestId, approvalId, round, data } = parts;
  const known = { decision, feedback, executionId, approvalRequestId, approvalId, round, data };
  return new Result(known) as unknown as ApprovalResult;
}

/**
 * The result that a final approval means. Throws `Refused` as {@link resultFrom} does, also for one that is pending.
 *
 * @param standing a final approval
 * @param executionId the execution that asked
 */
export function resultOf(standing: Standing, executionId: string): ApprovalResult {
  const { status, approvalRequestId, approvalId, round, response } = standing;
  return resultFrom({
    decision: status,
    feedback: response?.feedback ?? "",
    executionId,
    approvalRequestId,
    approvalId,
    round,
    data: response?.data ?? null,
  });
}
