import assert from "node:assert/strict";
import { test } from "node:test";

import { ApprovalClient, ConnectionFailed, KeyRefused, NotFound, WaitTimeout } from "../../src/index.js";
import { after, deadline, nextTimer, sleep } from "../../src/timers.js";
import { approval, Plane, problem } from "./plane.js";

const LOOK = "GET /api/v1/executions/run-1/approval-status";
const HELD = "POST /api/v1/approvals/wait";
const LONGER_THAN_A_TIMER = 3e9;

const pending = () => ({ json: approval("pending") });
const stillPending = () => ({ json: { approvals: [] } });
const settledAs = (status: string) => () => ({ json: { approvals: [approval(status)] } });

test("a decision that stands is returned at once", async (t) => {
  const plane = await Plane.start(t, [() => ({ json: approval("rejected") })]);
  const result = await new ApprovalClient({ baseURL: plane.url }).waitForApproval("run-1");
  assert.deepEqual(plane.lines, [LOOK]);
  assert.deepEqual([result.decision, result.feedback, result.data], ["rejected", "so be it", { n: 1 }]);
});

test("the wait is a held call, and the decision ends it", async (t) => {
  const plane = await Plane.start(t, [pending, settledAs("approved")]);
  const client = new ApprovalClient({ baseURL: plane.url });
  const result = await client.waitForApproval("run-1", { approvalRequestId: "review" });
  assert.ok(result.approved);
  assert.deepEqual(plane.lines, [`${LOOK}?approval_request_id=review`, HELD]);
  assert.deepEqual(plane.seen[1]?.json, { approval_ids: ["apr_1"], wait: 50 });
});

test("a question that is asked meanwhile is not taken for the one that is waited for", async (t) => {
  const other = approval("approved", { approval_id: "apr_2", approval_request_id: "other" });
  const plane = await Plane.start(t, [
    pending,
    () => ({ json: { approvals: [other] } }),
    () => ({ json: { approvals: [other, approval("rejected")] } }),
  ]);
  const result = await new ApprovalClient({ baseURL: plane.url }).waitForApproval("run-1");
  assert.deepEqual([result.decision, result.approvalRequestId], ["rejected", "review"]);
});

test("a wait of more than 2^31 ms is still there after two round trips, and then ends with the decision", async (t) => {
  const plane = await Plane.start(t, [pending, stillPending, stillPending, settledAs("approved")]);
  const client = new ApprovalClient({ baseURL: plane.url });
  const began = performance.now();
  const result = await client.waitForApproval("run-1", { timeoutMs: LONGER_THAN_A_TIMER });
  assert.ok(result.approved);
  assert.deepEqual(plane.lines, [LOOK, HELD, HELD, HELD]);
  // A server that answers at once is not asked in a busy loop.
  assert.ok(performance.now() - began > 1900);
});

test("no timer is set to more than a timer can, and the pieces make up the whole", () => {
  const longest = 2 ** 31 - 1;
  for (const whole of [0, 0.5, 1000, longest, longest + 1, LONGER_THAN_A_TIMER, 365 * 24 * 3600e3]) {
    let left = whole;
    let passed = 0;
    for (let timers = 0; left > 0; timers += 1) {
      const next = nextTimer(left);
      assert.ok(next >= 1 && next <= longest && timers < 20);
      passed += next;
      left -= next;
    }
    assert.ok(passed >= whole && passed < whole + 1);
  }
  assert.equal(nextTimer(Infinity), longest);
});

test("a time longer than any timer does not pass at once", async () => {
  const ended: string[] = [];
  const stops = [LONGER_THAN_A_TIMER, Infinity].map((ms) => after(ms, () => ended.push(`${ms}`)));
  await sleep(20);
  assert.deepEqual(ended, []);
  for (const stop of stops) stop();
  assert.ok(deadline(LONGER_THAN_A_TIMER).left() > 2.9e9 && !deadline(null).passed && deadline(0).passed);
  assert.throws(() => deadline(Number.NaN), RangeError);
});

test("when the caller's time is up the approval stays pending, and can be waited for again", async (t) => {
  const plane = await Plane.start(t, [pending, stillPending, pending, settledAs("approved")]);
  const client = new ApprovalClient({ baseURL: plane.url });
  await assert.rejects(client.waitForApproval("run-1", { timeoutMs: 200 }), (error) => {
    assert.ok(error instanceof WaitTimeout);
    assert.deepEqual(error.details, { approval_id: "apr_1" });
    return true;
  });
  const hold = plane.seen[1]?.json["wait"];
  assert.ok(typeof hold === "number" && hold > 0 && hold <= 0.2);
  assert.ok((await client.waitForApproval("run-1")).approved);
});

test("a wait of no time looks once", async (t) => {
  const plane = await Plane.start(t, [pending]);
  const client = new ApprovalClient({ baseURL: plane.url });
  await assert.rejects(client.waitForApproval("run-1", { timeoutMs: 0 }), WaitTimeout);
  assert.deepEqual(plane.lines, [LOOK]);
});

test("time that passes before the control plane could say how it stands is a failed connection", async (t) => {
  const plane = await Plane.start(t, []);
  await plane.stop();
  const client = new ApprovalClient({ baseURL: plane.url });
  await assert.rejects(client.waitForApproval("run-1", { timeoutMs: 100 }), ConnectionFailed);
});

test("time that passes while the control plane is away is the caller's time", async (t) => {
  const away = Array.from({ length: 9 }, () => () => ({ status: 503 }));
  const plane = await Plane.start(t, [pending, () => "cut", ...away]);
  const client = new ApprovalClient({ baseURL: plane.url });
  await assert.rejects(client.waitForApproval("run-1", { timeoutMs: 400 }), WaitTimeout);
});

test("what was never asked cannot be waited for", async (t) => {
  const plane = await Plane.start(t, [() => problem(404, "no_approval_request")]);
  await assert.rejects(new ApprovalClient({ baseURL: plane.url }).waitForApproval("run-1"), NotFound);
});

test("a status that no SDK knows is an error and never a decision", async (t) => {
  const unknown = () => ({ json: approval("approved_by_default") });
  const plane = await Plane.start(t, [unknown, pending, settledAs("waved_through")]);
  const client = new ApprovalClient({ baseURL: plane.url });
  const refused = { name: "Refused", code: "unexpected_reply" };
  for (const _ of [1, 2]) await assert.rejects(client.waitForApproval("run-1"), refused);
});

test("one refusal in a wait may be a proxy's, three of them end it", async (t) => {
  const refused = () => problem(401, "invalid_key");
  const plane = await Plane.start(t, [
    pending,
    refused,
    () => ({ status: 404, body: "<html>" }),
    stillPending,
    () => problem(500, "internal_error"),
    refused,
    refused,
    refused,
  ]);
  const client = new ApprovalClient({ baseURL: plane.url });
  await assert.rejects(client.waitForApproval("run-1"), KeyRefused);
  assert.equal(plane.seen.length, 8);
});
