import assert from "node:assert/strict";
import { test } from "node:test";

import { ApprovalClient } from "../../src/index.js";
import { seal } from "../../src/seals.js";
import { approval, execution, Plane } from "./plane.js";

test("a wait goes on at the control plane that comes after", async (t) => {
  const before = await Plane.start(t, [() => ({ json: approval("pending") }), () => "hold"]);
  const waiting = new ApprovalClient({ baseURL: before.url }).waitForApproval("run-1");
  await before.request(1);
  await before.stop();
  const settled = { json: { approvals: [approval("approved")] } };
  const after = await Plane.start(t, [() => ({ status: 503 }), () => settled], before.port);
  assert.ok((await waiting).approved);
  assert.equal(after.seen[1]?.url, "/api/v1/approvals/wait");
});

test("a question whose reply was lost is asked again, under the same id and round", async (t) => {
  const asked = { approval_id: "apr_1", approval_request_id: "review", round: 1, status: "pending" };
  const plane = await Plane.start(t, [() => "cut", () => ({ json: asked })]);
  await new ApprovalClient({ baseURL: plane.url }).requestApproval("run-1", { approvalRequestId: "review", round: 1 });
  assert.equal(plane.seen[0]?.body, plane.seen[1]?.body);
});

test("a short-lived question is waited for at the control plane that comes after", async (t) => {
  let key = "";
  const before = await Plane.start(t, [
    (seen) => {
      key = String(seen.json["public_key"]);
      return { status: 201, body: { unique_id: "otp-1" } };
    },
    () => "hold",
  ]);
  const asking = new ApprovalClient({ baseURL: before.url }).humanFeedback("The code?", { uniqueId: "otp-1" });
  await before.request(1);
  await before.stop();
  await Plane.start(
    t,
    [
      async () => ({ json: { outcome: "answered", sealed: await seal(key, "otp-1", "482913") } }),
      () => ({ json: { unique_id: "otp-1", outcome: "answered" } }),
    ],
    before.port,
  );
  assert.equal(await asking, "482913");
});

test("a called run is waited for, under one key, through every outage", async (t) => {
  const plane = await Plane.start(t, [
    () => "cut",
    () => ({ status: 202, body: { execution_id: "run-1", status: "waiting" } }),
    () => ({ status: 502 }),
    () => ({ json: { execution_id: "run-1", status: "succeeded" } }),
    () => ({ json: execution("succeeded", { result: { done: true } }) }),
  ]);
  const client = new ApprovalClient({ baseURL: plane.url });
  const run = await client.execute("node", "perform", { a: 1 }, { waitSeconds: null });
  assert.deepEqual([run.final, run.result], [true, { done: true }]);
  assert.deepEqual(plane.lines, [
    "POST /api/v1/execute/node.perform?wait=1",
    "POST /api/v1/execute/node.perform?wait=1",
    "POST /api/v1/execute/node.perform?wait=50",
    "POST /api/v1/execute/node.perform?wait=50",
    "GET /api/v1/executions/run-1",
  ]);
  const keys = new Set(plane.seen.slice(0, 4).map((seen) => seen.headers["idempotency-key"]));
  assert.equal(keys.size, 1);
  assert.match([...keys][0] as string, /^call_[0-9a-f]{32}$/);
});

test("a called run that goes on when the time is up is returned as it stands", async (t) => {
  const plane = await Plane.start(t, [
    () => ({ status: 202, body: { execution_id: "run-1", status: "waiting" } }),
    () => ({ json: execution("waiting") }),
  ]);
  const run = await new ApprovalClient({ baseURL: plane.url }).execute("node", "perform", {}, { waitSeconds: 0 });
  assert.deepEqual([run.final, run.status, plane.lines.length], [false, "waiting", 2]);
});

test("short calls take turns, and held ones do not stand in their way", async (t) => {
  const held = Array.from({ length: 40 }, () => () => "hold" as const);
  let underWay = 0;
  let most = 0;
  let open = (): void => undefined;
  const full = new Promise<void>((resolve) => (open = resolve));
  const short = Array.from({ length: 100 }, () => async () => {
    most = Math.max(most, (underWay += 1));
    if (underWay === 32) open();
    await full;
    // Were more sent than may be, they would come meanwhile.
    for (let turns = 0; turns < 50; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    underWay -= 1;
    return { json: approval("pending") };
  });
  const plane = await Plane.start(t, [...held, ...short]);
  const client = new ApprovalClient({ baseURL: plane.url });
  const controller = new AbortController();
  const waits = held.map(() => client.getApprovalStatus("run-1", { waitSeconds: 60, signal: controller.signal }));
  const ended = Promise.allSettled(waits);
  await plane.request(39);
  await Promise.all(short.map(() => client.getApproval("apr_1")));
  assert.equal(most, 32);
  controller.abort();
  assert.ok((await ended).every(({ status }) => status === "rejected"));
});
