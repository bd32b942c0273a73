import assert from "node:assert/strict";
import { test } from "node:test";

import { ApprovalClient, InvalidField, NotFound, signWebhook, verifyWebhook } from "../../src/index.js";
import { approval, execution, Plane, problem } from "./plane.js";

// Names that a renaming would change: JSON of the caller's is handed over as it is.
const THEIRS = { camelCase: 1, snake_case: { kebabCase: [null, { aB: true }] }, "": "", __proto: "x" };

test("a question is asked under the wire's names, and its payload under the caller's own", async (t) => {
  const asked = {
    approval_id: "apr_1",
    approval_request_id: "review",
    round: 2,
    status: "pending",
    approval_request_url: "http://127.0.0.1/approvals/apr_1",
    payload_digest: "ab",
    response: null,
    added_later: true,
  };
  const plane = await Plane.start(t, [() => ({ json: asked })]);
  const client = new ApprovalClient({ baseURL: `${plane.url}/`, nodeId: "node", apiKey: " hsk_1\n" });
  const found = await client.requestApproval("run/1", {
    approvalRequestId: "review",
    approvalRequestUrl: "https://review.example.com/1",
    callbackUrl: "https://agent.example.com/webhooks/approval",
    callbackSecret: "0123456789abcdef",
    expiresInHours: 0.5,
    title: "Sign?",
    description: undefined,
    payload: THEIRS,
    onExpiry: "resume",
    decidedBy: "erp",
    round: 2,
    form: { kind: "form", schema: { properties: { aB: {} } }, editable: true },
  });
  const seen = await plane.request(0);
  assert.equal(plane.lines[0], "POST /api/v1/agents/node/executions/run%2F1/request-approval");
  assert.equal(seen.headers.authorization, "Bearer hsk_1");
  assert.equal(seen.headers["content-type"], "application/json");
  assert.match(seen.headers["user-agent"] ?? "", /^holdshort-typescript\/\d/);
  assert.deepEqual(seen.json, {
    approval_request_id: "review",
    approval_request_url: "https://review.example.com/1",
    callback_url: "https://agent.example.com/webhooks/approval",
    callback_secret: "0123456789abcdef",
    expires_in_hours: 0.5,
    title: "Sign?",
    payload: THEIRS,
    on_expiry: "resume",
    decided_by: "erp",
    round: 2,
    form: { kind: "form", schema: { properties: { aB: {} } }, editable: true },
  });
  assert.deepEqual([found.approvalId, found.round, found.payloadDigest, found.final], ["apr_1", 2, "ab", false]);
});

test("without a node the unscoped routes are called", async (t) => {
  const plane = await Plane.start(t, [() => ({ json: approval("pending") }), () => ({ json: approval("expired") })]);
  const client = new ApprovalClient({ baseURL: plane.url });
  const first = await client.getApprovalStatus("run-1", { approvalRequestId: "a b&c", waitSeconds: 0.5 });
  const second = await client.getApprovalStatus("run-1");
  assert.deepEqual(plane.lines, [
    "GET /api/v1/executions/run-1/approval-status?approval_request_id=a+b%26c&wait=0.5",
    "GET /api/v1/executions/run-1/approval-status",
  ]);
  assert.deepEqual([first.final, first.response, second.final], [false, null, true]);
  assert.deepEqual(second.response, { decision: "expired", feedback: "so be it", data: { n: 1 } });
  assert.equal(first.requestedAt, "2026-06-01T10:00:00.123456Z");
});

test("an approval is decided, withdrawn, expired, read and listed", async (t) => {
  const entry = {
    type: "approval_requested",
    at: "2026-06-01T10:00:00Z",
    actor_kind: "agent",
    actor_name: "node",
    actor_via: "key",
    data: THEIRS,
  };
  const whole = approval("approved", {
    node_id: "node",
    payload: THEIRS,
    payload_digest: "ab",
    form: { kind: "yes_no", yes_label: "Ja", no_label: "Nein" },
    history: [entry],
  });
  const plane = await Plane.start(t, [
    () => ({ json: { status: "processed", execution_id: "run-1", new_status: "running", decision: "approved" } }),
    () => ({ json: { status: "already_processed", approval_status: "approved", replayed: true } }),
    () => ({ json: whole }),
    () => ({ json: whole }),
    () => ({ json: whole }),
    () => ({ json: { approvals: [whole], next_cursor: "c2" } }),
  ]);
  const client = new ApprovalClient({ baseURL: plane.url, apiKey: "hsk_1" });
  const words = { decision: "approve", feedback: "ok", response: THEIRS, round: 1, values: THEIRS };
  const decided = await client.decide("apr_1", { ...words, payloadDigest: "ab" });
  const replayed = await client.answerExecution("run-1", { decision: "approve" }, { approvalRequestId: "review" });
  await client.withdraw("apr_1");
  await client.expire("apr_1");
  const read = await client.getApproval("apr_1");
  const page = await client.listApprovals({ status: "pending", nodeId: "node", limit: 2, cursor: "c1" });
  assert.deepEqual(plane.lines, [
    "POST /api/v1/approvals/apr_1/decision",
    "POST /api/v1/executions/run-1/approval-response",
    "POST /api/v1/approvals/apr_1/withdraw",
    "POST /api/v1/approvals/apr_1/expire",
    "GET /api/v1/approvals/apr_1",
    "GET /api/v1/approvals?status=pending&node_id=node&limit=2&cursor=c1",
  ]);
  assert.deepEqual(plane.seen[0]?.json, { ...words, payload_digest: "ab" });
  assert.deepEqual(plane.seen[1]?.json, { decision: "approve", approval_request_id: "review" });
  assert.deepEqual([decided.newStatus, decided.replayed, replayed.approvalStatus], ["running", false, "approved"]);
  assert.ok(replayed.replayed);
  assert.deepEqual([read.payload, read.form?.yesLabel, read.history[0]?.data], [THEIRS, "Ja", THEIRS]);
  assert.equal(read.history[0]?.actorKind, "agent");
  assert.deepEqual([page.nextCursor, page.approvals.length], ["c2", 1]);
});

test("an execution is created, read, listed, cancelled and called", async (t) => {
  const reason = "approval_expired_cancelled";
  const ended = execution("cancelled", { status_reason: reason, input: THEIRS, result: THEIRS, fence: 2 });
  const plane = await Plane.start(t, [
    () => ({ status: 201, body: execution("running") }),
    () => ({ json: ended }),
    () => ({ json: { executions: [ended], next_cursor: null } }),
    () => ({ json: execution("cancelled", { status_reason: "cancelled_by_operator" }) }),
    () => ({ status: 202, body: { execution_id: "run-2", status: "queued", target: "node.perform" } }),
  ]);
  const client = new ApprovalClient({ baseURL: plane.url, nodeId: "node" });
  const created = await client.createExecution("run-1", { reasoner: "perform", input: THEIRS, runId: "group" });
  const read = await client.getExecution("run-1");
  const page = await client.listExecutions({ nodeId: "node", limit: 1 });
  const cancelled = await client.cancelExecution("run-1", { reason: "enough" });
  const queued = await client.executeAsync("node", "perform", THEIRS, { idempotencyKey: "once" });
  assert.deepEqual(plane.lines, [
    "POST /api/v1/executions",
    "GET /api/v1/executions/run-1",
    "GET /api/v1/executions?node_id=node&limit=1",
    "POST /api/v1/executions/run-1/cancel",
    "POST /api/v1/execute/async/node.perform",
  ]);
  const members = { node_id: "node", execution_id: "run-1", reasoner: "perform", input: THEIRS, run_id: "group" };
  assert.deepEqual(plane.seen[0]?.json, members);
  assert.deepEqual([created.final, read.final], [false, true]);
  assert.deepEqual([read.endedByApproval, cancelled.endedByApproval], [true, false]);
  assert.deepEqual([read.input, read.result, read.fence, page.executions[0]?.result], [THEIRS, THEIRS, 2, THEIRS]);
  assert.deepEqual(plane.seen[4]?.json, { input: THEIRS });
  assert.equal(plane.seen[4]?.headers["idempotency-key"], "once");
  assert.equal(queued.executionId, "run-2");
});

test("a signed decision arrives byte for byte, and is verified", async (t) => {
  const plane = await Plane.start(t, [() => ({ json: { status: "processed" } })]);
  const body = '{ "requestId":"review",  "decision":"approved", "é":1.50 }';
  const headers = await signWebhook("a secret of sixteen", body, { scheme: "timestamped" });
  await new ApprovalClient({ baseURL: plane.url }).sendWebhook(body, headers);
  assert.equal(plane.seen[0]?.body, body);
  const sent = plane.seen[0]?.headers as Record<string, string>;
  await verifyWebhook(sent, new TextEncoder().encode(body), ["a secret of sixteen"]);
});

test("without a node of its own or in the call no execution is created", async () => {
  await assert.rejects(new ApprovalClient({ baseURL: "http://127.0.0.1:9" }).createExecution("run-1"), InvalidField);
});

test("a person's side of short-lived questions: what is pending, and an answer", async (t) => {
  const question = {
    unique_id: "otp-1",
    message_for_user: "The code?",
    kind: "yes_no",
    options: null,
    yes_label: "Ja",
    allow_feedback: false,
    context: "This request expires in 60 seconds.",
  };
  const plane = await Plane.start(t, [
    () => ({ json: { requests: [question, { ...question, options: ["a", "b"] }] } }),
    () => ({ json: { unique_id: "otp-1", status: "success", message: "Thanks." } }),
    () => problem(404, "request_not_found"),
  ]);
  const client = new ApprovalClient({ baseURL: plane.url });
  const { requests } = await client.pendingFeedback();
  const taken = await client.submitFeedback("otp-1", "yes", { submissionId: "s1" });
  await assert.rejects(client.submitFeedback("otp-2", "yes"), NotFound);
  assert.deepEqual([requests[0]?.yesLabel, requests[0]?.options, requests[1]?.options], ["Ja", null, ["a", "b"]]);
  assert.deepEqual(plane.seen[1]?.json, { unique_id: "otp-1", response: "yes", submission_id: "s1" });
  assert.deepEqual(plane.seen[2]?.json, { unique_id: "otp-2", response: "yes" });
  assert.deepEqual(taken, { uniqueId: "otp-1", status: "success", message: "Thanks." });
});
