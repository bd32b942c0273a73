import assert from "node:assert/strict";
import { test } from "node:test";

import type { ApprovalResult, Decision } from "../../src/index.js";
import { resultFrom, resultOf } from "../../src/result.js";

const DECISIONS: readonly Decision[] = ["approved", "rejected", "request_changes", "expired", "withdrawn"];
const FLAGS = ["approved", "rejected", "changesRequested", "expired", "withdrawn"] as const;

function result(decision: string, data: unknown = null): ApprovalResult {
  const ids = { executionId: "run-1", approvalRequestId: "review", approvalId: "apr_1", round: 1 };
  return resultFrom({ decision, feedback: "", data, ...ids });
}

test("each decision sets exactly its own flag", () => {
  DECISIONS.forEach((decision, index) => {
    assert.deepEqual(
      FLAGS.map((flag) => result(decision)[flag]),
      FLAGS.map((_, other) => other === index),
    );
  });
});

test("it is no number, and equals nothing", () => {
  const approved = result("approved") as unknown as number;
  const conversions = [
    () => +approved,
    () => approved + 1,
    () => approved > 0,
    () => (approved as unknown) == true,
    () => "" + approved,
    () => Math.max(approved),
    () => BigInt(approved),
  ];
  for (const convert of conversions) assert.throws(convert, /no truth value; ask result\.approved/);
  assert.equal(String(result("approved")), String(result("rejected")));
});

test("it cannot be changed into another one", () => {
  const rejected = result("rejected") as unknown as Record<string, unknown>;
  for (const [name, value] of [["decision", "approved"], ["approved", true], ["more", 1]] as const) {
    assert.throws(() => (rejected[name] = value), TypeError);
  }
  assert.deepEqual([rejected["decision"], rejected["approved"]], ["rejected", false]);
});

test("a copy and its JSON say what it said", () => {
  const changes = result("request_changes", { n: 1 });
  assert.deepEqual({ ...changes }, JSON.parse(JSON.stringify(changes)));
  assert.equal({ ...changes }.approved, false);
});

test("values come with an approval, and with nothing else", () => {
  const data = { values: { amount: 5 }, original: { amount: 7 }, more: 1 };
  const approved = result("approved", data);
  assert.deepEqual([approved.values, approved.original, approved.data], [data.values, data.original, data]);
  for (const decision of DECISIONS.slice(1)) {
    const { values, original } = result(decision, data);
    assert.deepEqual([values, original], [null, null]);
  }
  for (const none of [null, [data], "values", 5, { original: 1 }]) {
    const { values, original } = result("approved", none);
    assert.deepEqual([values, original], [null, null]);
  }
  assert.equal(result("approved", Object.create(data)).values, null);
});

test("what is no decision makes no result", () => {
  for (const word of ["pending", "Approved", "approve", "", "constructor", "__proto__", "true"]) {
    assert.throws(() => result(word), { code: "unexpected_reply" });
  }
  const standing = { status: "pending", approvalRequestId: "a", approvalId: "b", round: 1, response: null };
  const yes = { decision: "approved", feedback: "", data: null };
  assert.throws(() => resultOf({ ...standing, response: yes }, "run-1"), { code: "unexpected_reply" });
  assert.equal(resultOf({ ...standing, status: "expired", response: yes }, "run-1").decision, "expired");
});
