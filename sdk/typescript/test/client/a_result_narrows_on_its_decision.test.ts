/** What the compiler knows of a result: that this file compiles is the test, and what it refuses is marked. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Conflict, NotFound } from "../../src/index.js";
import type { ApprovalClient, ApprovalResult, Decision, HoldshortError } from "../../src/index.js";
import { resultFrom } from "../../src/result.js";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_: Same<A, B>): void => undefined;

function told(result: ApprovalResult): string {
  switch (result.decision) {
    case "approved":
      same<typeof result.approved, true>(true);
      same<typeof result.values, unknown>(true);
      return "yes";
    case "rejected":
      same<typeof result.approved, false>(true);
      same<typeof result.rejected, true>(true);
      same<typeof result.values, null>(true);
      return "no";
    case "request_changes":
      same<typeof result.changesRequested, true>(true);
      return "otherwise";
    case "expired":
    case "withdrawn":
      same<typeof result.decision, "expired" | "withdrawn">(true);
      return "nobody";
    default:
      same<typeof result, never>(true);
      return result;
  }
}

function byFlag(result: ApprovalResult): Decision {
  if (result.approved) {
    same<typeof result.decision, "approved">(true);
    return result.decision;
  }
  same<typeof result.decision, Exclude<Decision, "approved">>(true);
  // @ts-expect-error nothing else is an approval
  const approved: "approved" = result.decision;
  return approved;
}

function refusedByTheCompiler(result: ApprovalResult, client: ApprovalClient): void {
  // @ts-expect-error no word but the five
  if (result.decision === "approve") return;
  // @ts-expect-error a result is no boolean
  const yes: boolean = result;
  // @ts-expect-error a result is what was said
  result.decision = "approved";
  // @ts-expect-error a question has an id
  void client.requestApproval("run-1", { title: "?" });
  // @ts-expect-error the deadline cancels or resumes
  void client.requestApproval("run-1", { approvalRequestId: "a", onExpiry: "approve" });
  // @ts-expect-error no such kind
  void client.humanFeedback("?", { kind: "number" });
  void yes;
}

function kindOf(error: HoldshortError): string {
  if (error instanceof NotFound) return "not found";
  // Were the classes one to the compiler, nothing would be left here.
  if (error instanceof Conflict) return `conflict ${error.code}`;
  return error.code;
}

test("the compiler narrows as the program does", () => {
  const parts = { feedback: "", executionId: "", approvalRequestId: "", approvalId: "", round: 1, data: null };
  const results = (["approved", "rejected", "expired"] as const).map((decision) => resultFrom({ ...parts, decision }));
  assert.deepEqual(results.map(told), ["yes", "no", "nobody"]);
  assert.deepEqual(results.map(byFlag), ["approved", "rejected", "expired"]);
  assert.equal(typeof refusedByTheCompiler, "function");
  assert.equal(kindOf(new Conflict()), "conflict conflict");
});
