/** Every route of approvals, one function each: arguments in, a Call out. Those of runs and nodes are passed on. */

import { apiPath, jsonOf, type Call } from "./core.js";
import { asItCame } from "./members.js";
import * as wire from "./wire.js";

export * from "./feedbackRoutes.js";
export * from "./nodeRoutes.js";
export * from "./runRoutes.js";

/** What is asked of a person. */
export interface RequestApprovalPayload {
  /** The caller's id, 1-256 characters, unique per execution and round. */
  approvalRequestId: string;
  /** http(s) page where the person decides; without one, the control plane's own. */
  approvalRequestUrl?: string | undefined;
  /** Where the decision is pushed. */
  callbackUrl?: string | undefined;
  /** Signs what is pushed, 16-256 characters. */
  callbackSecret?: string | undefined;
  /** 1 s to 8760 h, fractions allowed; the control plane's default (72) when absent. */
  expiresInHours?: number | undefined;
  /** At most 200 characters. */
  title?: string | undefined;
  /** At most 20,000 characters. */
  description?: string | undefined;
  /** The exact action, any JSON up to 256 KiB. */
  payload?: unknown;
  /** "cancel" (when absent) ends the run at the deadline, "resume" lets it go on with the result expired. */
  onExpiry?: wire.OnExpiry | undefined;
  /** Name of the only webhook sender whose answer counts. */
  decidedBy?: string | undefined;
  /** The how-many-eth ask under the id; the control plane works it out when absent. */
  round?: number | undefined;
  /** What the person fills in; the values come with an approval. */
  form?: wire.Form | undefined;
}

/** What a person or operator decides. */
export interface Verdict {
  /** approved, rejected or request_changes (or an alias: approve, reject, deny, ...). */
  decision: string;
  /** Comment for the agent. */
  feedback?: string | undefined;
  /** Taken as feedback when there is none. */
  reason?: string | undefined;
  /** Any JSON, handed to the agent as `data`. */
  response?: unknown;
  /** Of what was seen; refused when another one stands. */
  payloadDigest?: string | undefined;
  /** The round that was seen; refused when another one stands. */
  round?: number | undefined;
  /** What was filled in, where it is approved and was asked with a form. */
  values?: unknown;
}

/** Which approvals to list: by any of these. */
export interface ApprovalFilter {
  status?: string | undefined;
  nodeId?: string | undefined;
  executionId?: string | undefined;
  approvalRequestId?: string | undefined;
  /** Searches ids, titles and descriptions. */
  q?: string | undefined;
  /** requested (when absent) or deadline. */
  order?: string | undefined;
  /** At most 200. */
  limit?: number | undefined;
  /** `nextCursor` of the page before. */
  cursor?: string | undefined;
}

/**
 * Ask, or ask again: what stands under the id and round is returned.
 *
 * @param executionId the execution that asks
 * @param question what is asked
 * @param nodeId when given, the execution must be this node's
 */
export function requestApproval(
  executionId: string,
  question: RequestApprovalPayload,
  nodeId?: string,
): Call<wire.Asked> {
  const path = apiPath(...owner(nodeId), "executions", executionId, "request-approval");
  const body = jsonOf({
    approval_request_id: question.approvalRequestId,
    approval_request_url: question.approvalRequestUrl,
    callback_url: question.callbackUrl,
    callback_secret: question.callbackSecret,
    expires_in_hours: question.expiresInHours,
    title: question.title,
    description: question.description,
    payload: question.payload,
    on_expiry: question.onExpiry,
    decided_by: question.decidedBy,
    round: question.round,
    form: question.form && formOf(question.form),
  });
  return { method: "POST", path, body, read: wire.readAsked };
}

function formOf(form: wire.Form): Record<string, unknown> {
  const { kind, options, schema, editable } = form;
  return { kind, options, yes_label: form.yesLabel, no_label: form.noLabel, schema, editable };
}

/** Picks an approval of an execution, and says how long to wait for its end. */
export interface StatusQuery {
  /** Picks one of the execution's questions; its newest when absent. */
  approvalRequestId?: string | undefined;
  /** 0-60 s to hold the call until the approval is final. */
  waitSeconds?: number | undefined;
  /** When given, the execution must be this node's. */
  nodeId?: string | undefined;
}

/** The newest approval of an execution (under an id, when named). */
export function getApprovalStatus(executionId: string, which: StatusQuery = {}): Call<wire.ApprovalStatus> {
  const { approvalRequestId, waitSeconds, nodeId } = which;
  return {
    method: "GET",
    path: apiPath(...owner(nodeId), "executions", executionId, "approval-status"),
    query: { approval_request_id: approvalRequestId, wait: waitSeconds?.toString() },
    holdMs: 1000 * (waitSeconds ?? 0),
    read: wire.readStatus,
  };
}

/** Those of up to 10,000 approvals that are final, as soon as there is one, or none after `waitSeconds` (0-60). */
export function waitForApprovals(approvalIds: readonly string[], waitSeconds: number): Call<wire.Settled> {
  return {
    method: "POST",
    path: apiPath("approvals", "wait"),
    body: jsonOf({ approval_ids: approvalIds, wait: waitSeconds }),
    holdMs: 1000 * waitSeconds,
    read: wire.readSettled,
  };
}

/** A page of approvals. */
export function listApprovals(which: ApprovalFilter = {}): Call<wire.ApprovalPage> {
  const query = {
    status: which.status,
    node_id: which.nodeId,
    execution_id: which.executionId,
    approval_request_id: which.approvalRequestId,
    q: which.q,
    order: which.order,
    limit: which.limit?.toString(),
    cursor: which.cursor,
  };
  return { method: "GET", path: apiPath("approvals"), query, read: wire.readApprovalPage };
}

/** One approval with its history. */
export function getApproval(approvalId: string): Call<wire.Approval> {
  return { method: "GET", path: apiPath("approvals", approvalId), read: wire.readApproval };
}

/** Move an approval's callback to another address; told again if it is final already. */
export function setCallback(
  approvalId: string,
  callbackUrl: string,
  callbackSecret?: string,
): Call<wire.Approval> {
  const body = jsonOf({ callback_url: callbackUrl, callback_secret: callbackSecret });
  return { method: "POST", path: apiPath("approvals", approvalId, "callback"), body, read: wire.readApproval };
}

/** Decide one approval as a person or operator. */
export function decide(approvalId: string, verdict: Verdict): Call<wire.Decided> {
  const path = apiPath("approvals", approvalId, "decision");
  return { method: "POST", path, body: jsonOf(verdictOf(verdict)), read: wire.readDecided };
}

/** Decide the pending approval of an execution, named when several are pending. */
export function answerExecution(
  executionId: string,
  verdict: Verdict,
  approvalRequestId?: string,
): Call<wire.Decided> {
  const path = apiPath("executions", executionId, "approval-response");
  const body = jsonOf({ ...verdictOf(verdict), approval_request_id: approvalRequestId });
  return { method: "POST", path, body, read: wire.readDecided };
}

/** Take a question back; what stands is returned, of a final approval the answer it has. */
export function withdraw(approvalId: string): Call<wire.Approval> {
  return { method: "POST", path: apiPath("approvals", approvalId, "withdraw"), body: "{}", read: wire.readApproval };
}

/** End a question's time now, as the asking node; what stands is returned, of a final approval the answer it has. */
export function expire(approvalId: string): Call<wire.Approval> {
  return { method: "POST", path: apiPath("approvals", approvalId, "expire"), body: "{}", read: wire.readApproval };
}

/**
 * Post a signed decision (see `@holdshort/sdk/webhooks`); the body is sent as it is.
 *
 * @param body exactly what was signed
 * @param headers with the signature
 */
export function sendWebhook(body: string, headers: Readonly<Record<string, string>>): Call<unknown> {
  const path = apiPath("webhooks", "approval-response");
  return { method: "POST", path, body, headers: { ...headers }, read: asItCame };
}

function verdictOf(verdict: Verdict): Record<string, unknown> {
  const { decision, feedback, reason, response, round, values } = verdict;
  return { decision, feedback, reason, response, payload_digest: verdict.payloadDigest, round, values };
}

function owner(nodeId: string | undefined): string[] {
  return nodeId ? ["agents", nodeId] : [];
}
