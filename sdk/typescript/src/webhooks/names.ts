/** Which approval a body means, and the rules for the ids that it names. */

import { UnreadableBody } from "../unreadable.js";
import { agreed, type Found, found, type Members, refused, roundOf } from "./members.js";
import { withoutSpace } from "./space.js";

const APPROVAL_PREFIX = "apr_";
const NAME = /^[A-Za-z0-9._~:-]{1,128}$/;
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;
const LONGEST_REQUEST_ID = 256;

/** Which approval a body means. */
export interface Named {
  readonly requestId: string | null;
  readonly approvalId: string | null;
  readonly executionId: string | null;
  readonly round: number | null;
}

/**
 * The ids and the round that a body names, each checked against its other spellings.
 *
 * @param places where approval_id and round may stand.
 * @param request the values in a request id's places; the control plane's own approval_id may stand there too.
 * @param execution the values in an execution id's places.
 */
export function namedBy(places: readonly Members[], request: readonly Found[], execution: readonly Found[]): Named {
  const sent = agreed("requestId", request);
  const isApproval = sent?.startsWith(APPROVAL_PREFIX) ?? false;
  const ours = isApproval ? request.slice(0, 1) : [];
  const approvalId = agreed("approval_id", [...found(places, ["approval_id"]), ...ours]);
  const executionId = agreed("executionId", execution);
  const requestId = sent === null || isApproval || withoutSpace(sent) === "" ? null : sent;
  if (requestId === null && approvalId === null) {
    throw new UnreadableBody("The body names no approval; send requestId (or approval_id).", "request_id_missing");
  }
  if (requestId !== null) checkRequestId(requestId);
  if (approvalId !== null) checkName("approval_id", approvalId);
  if (executionId !== null) checkName("executionId", executionId);
  return { requestId, approvalId, executionId, round: roundOf(places) };
}

function checkName(field: string, value: string): void {
  if (!NAME.test(value)) refused(field, "must be 1-128 characters of A-Z a-z 0-9 . _ ~ : -");
  if (/^\.*$/.test(value)) refused(field, "must not be of dots only, which paths lose on their way");
}

function checkRequestId(value: string): void {
  // Characters are code points here: an emoji is one.
  if ([...value].length > LONGEST_REQUEST_ID) refused("requestId", "must be 1-256 characters");
  if (CONTROL.test(value)) refused("requestId", "must not contain control characters");
}
