import assert from "node:assert/strict";
import { test } from "node:test";

import { readDecision } from "../../src/webhooks.js";
import { allHold, vectors } from "./vectors.js";

interface Outcome {
  error?: string;
  status?: "ignored";
  type?: string;
  request_id?: string;
  decision?: string;
  feedback?: string;
  response?: unknown;
  execution_id?: string | null;
}

const { cases } = vectors<{ cases: { name: string; body: string; outcome: Outcome }[] }>("webhook_bodies");

allHold("webhook_bodies", 46, cases.map((each) => [each.name, each] as const), ({ body, outcome }) => {
  if (outcome.error !== undefined) {
    assert.throws(() => readDecision(body), { name: "UnreadableBody", code: outcome.error });
    return;
  }
  const read = readDecision(new TextEncoder().encode(body));
  if (read.kind === "ignored") {
    assert.deepEqual({ status: "ignored", type: read.type }, outcome);
    return;
  }
  const { requestId, decision, feedback, response, executionId } = read;
  assert.deepEqual({ request_id: requestId, decision, feedback, response, execution_id: executionId }, outcome);
});

function codeOf(body: string): unknown {
  try {
    readDecision(body);
  } catch (error) {
    return (error as { code: unknown }).code;
  }
  return "read";
}

test("an answer to the control plane's own id names no request id", () => {
  for (const body of ['{"requestId":"apr_1","decision":"approve"}', '{"approval_id":"apr_1","decision":"approve"}']) {
    const read = readDecision(body);
    assert.ok(read.kind === "decision");
    assert.deepEqual([read.requestId, read.approvalId], [null, "apr_1"]);
  }
  assert.equal(codeOf('{"requestId":"apr_1","approval_id":"apr_2","decision":"approve"}'), "invalid_body");
});

test("only a whole number is a round", () => {
  const named = readDecision('{"requestId":"r","decision":"approve","round":2}');
  assert.equal(named.kind === "decision" && named.round, 2);
  for (const round of ["0", "-1", "1.0", "1e0", "true", '"1"', "2147483648", "[1]"]) {
    assert.equal(codeOf(`{"requestId":"r","decision":"approve","round":${round}}`), "invalid_body", round);
  }
});

test("ids that could mean another thing elsewhere are refused", () => {
  const body = (id: string): string => JSON.stringify({ requestId: id, decision: "approve" });
  for (const id of ["a\u2028", "a\n", "x".repeat(257), "\u0085x"]) assert.equal(codeOf(body(id)), "invalid_body");
  for (const id of ["", " ", "\u0085", "\u3000\t"]) assert.equal(codeOf(body(id)), "request_id_missing");
  for (const id of ["\ufeff", "x".repeat(256), "\u{1f44d}".repeat(256)]) assert.equal(codeOf(body(id)), "read");
  for (const id of ["a b", ".", "..", "x".repeat(129), ""]) {
    const naming = JSON.stringify({ requestId: "r", executionId: id, decision: "approve" });
    assert.equal(codeOf(naming), "invalid_body");
  }
});

test("values beside a response must be the response's own", () => {
  const flat = (rest: string): string => `{"requestId":"r","decision":"approve",${rest}}`;
  const alone = readDecision(flat('"values": {"a": 1.10}'));
  assert.equal(alone.kind === "decision" && alone.responseText, '{"values":{"a": 1.10}}');
  assert.equal(codeOf(flat('"values":{"a":1},"response":{"values": {"a": 1}}')), "read");
  assert.equal(codeOf(flat('"values":{"a":1},"response":{"values": {"a": 1.0}}')), "invalid_body");
  assert.equal(codeOf(flat('"values":{"a":1},"response":{}')), "invalid_body");
});

test("two readers find one decision, or none", () => {
  const both = (decision: string, inner: string): string =>
    `{"requestId":"r","decision":"${decision}","type":"completed","data":{"response":{"decision":"${inner}"}}}`;
  assert.equal(codeOf(both("approve", "approved")), "read");
  assert.equal(codeOf(both("approve", "reject")), "decision_conflict");
  assert.equal(codeOf('{"requestId":"r","decision":"approve","response":{"decision":"deny"}}'), "decision_conflict");
  assert.equal(codeOf('{"type":"opened","decision":"approve","data":{"id":"r"}}'), "decision_conflict");
});

test("a fault names the member that is to blame and repeats nothing", () => {
  assert.throws(
    () => readDecision('{"requestId":"r","decision":"approve","feedback":["\\ud83d"],"type":"private"}'),
    { details: { errors: [{ field: "feedback", rule: "must not contain half of a surrogate pair" }] } },
  );
  assert.throws(() => readDecision('{"decision":private}'), (error: Error) => !error.message.includes("private"));
});
