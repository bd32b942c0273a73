// A callback from bytes to the pause it is for; the signature is proven with the secret of that one request.

import { fromUtf8 } from "../bytes.js";
import { type ApprovalResult, resultFrom } from "../result.js";
import { standardHolds } from "../webhooks.js";
import { DECISIONS } from "../wire.js";
import type { Answered } from "./answers.js";
import type { Registry } from "./pauses.js";

/**
 * Take one callback.
 *
 * The timestamp is not compared with a clock: the secret lives for one request, and an agent whose clock is wrong must
 * resume all the same.
 *
 * @param registry who waits.
 * @param headers as received.
 * @param body the bytes as received.
 * @returns 200 with whether a pause waits or waited for it, 401 for a wrong signature, 400 for a body that is none.
 */
export async function receive(registry: Registry, headers: Headers, body: Uint8Array): Promise<Answered> {
  const told = toldBy(body);
  if (told === undefined) return refused(400, "invalid_body", "this is no approval callback");
  const secret = registry.secret(told);
  if (secret === undefined) return { status: 200, body: { resolved: false } };
  if (!(await standardHolds(headers, body, secret))) {
    return refused(401, "invalid_signature", "the signature does not match this request's secret");
  }
  return { status: 200, body: { resolved: registry.resolve(told) } };
}

function refused(status: number, error: string, message: string): Answered {
  return { status, body: { error, message } };
}

/** What a callback says; undefined for what is none. */
function toldBy(body: Uint8Array): ApprovalResult | undefined {
  const said = objectIn(body);
  if (said === undefined) return undefined;
  const { decision, feedback = "", round, data = null } = said;
  const executionId = said["execution_id"];
  const approvalRequestId = said["approval_request_id"];
  const approvalId = said["approval_id"];
  if (!isText(executionId) || !isText(approvalRequestId) || !isText(approvalId) || !isText(feedback)) return undefined;
  if (!isText(decision) || !DECISIONS.has(decision) || !Number.isInteger(round)) return undefined;
  return resultFrom({ decision, feedback, executionId, approvalRequestId, approvalId, round: round as number, data });
}

function objectIn(body: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(fromUtf8(body));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}
