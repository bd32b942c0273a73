import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";

import { onAbort } from "../../src/aborts.js";
import { ApprovalClient } from "../../src/index.js";
import { Slots } from "../../src/slots.js";
import { sleep, TimeIsUp, withTimeout } from "../../src/timers.js";
import { approval, Plane, type Act } from "./plane.js";

const AT_ONCE_MS = 1500;
const WHY = new Error("the caller has gone");

/** Says what became of a program that was told to abort what it was doing; see aborting.ts. */
interface Told {
  reason: string;
  ms: number;
  /** What would keep it running: timers, sockets. */
  left: string[];
}

/**
 * Lets a program do something and abort it when its nth request has come.
 *
 * The program must then end by itself, which it cannot while a timer or a socket is left.
 */
async function aborted(t: TestContext, what: string, acts: readonly Act[], at: number): Promise<Plane> {
  const plane = await Plane.start(t, acts);
  const program = fileURLToPath(new URL("aborting.js", import.meta.url));
  const child = spawn(process.execPath, [program, plane.url, what], { stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => child.kill());
  const exit = once(child, "exit");
  await Promise.race([plane.request(at), exit]);
  child.stdin.write("abort");
  const [printed, [code]] = await Promise.all([text(child.stdout), exit]);
  const told = JSON.parse(printed) as Told;
  assert.equal(code, 0);
  assert.equal(told.reason, "the caller has gone");
  assert.ok(told.ms < AT_ONCE_MS, `${told.ms} ms`);
  assert.deepEqual(told.left, []);
  return plane;
}

const pending: Act = () => ({ json: approval("pending") });

test("a wait that is held", async (t) => {
  const plane = await aborted(t, "wait", [pending, () => "hold"], 1);
  assert.equal(plane.seen.length, 2);
});

test("a wait for more than 2^31 ms", async (t) => {
  await aborted(t, "long wait", [pending, () => "hold"], 1);
});

test("the pause between two rounds of a wait", async (t) => {
  const plane = await aborted(t, "wait in pause", [pending, () => ({ json: { approvals: [] } })], 1);
  assert.equal(plane.seen.length, 2);
});

test("the pause between two tries", async (t) => {
  const busy: Act = () => ({ status: 503, headers: { "retry-after": "50" } });
  const plane = await aborted(t, "get in pause", [busy], 0);
  assert.equal(plane.seen.length, 1);
});

test("a short-lived question, which is withdrawn", async (t) => {
  const plane = await aborted(
    t,
    "question",
    [
      (seen) => ({ status: 201, body: { unique_id: seen.json["unique_id"] } }),
      () => "hold",
      () => ({ json: { unique_id: "otp-1", outcome: "cancelled" } }),
    ],
    1,
  );
  assert.deepEqual(plane.lines, [
    "POST /api/v1/human-feedback",
    "GET /api/v1/human-feedback/otp-1/answer?wait=55",
    "DELETE /api/v1/human-feedback/otp-1",
  ]);
});

test("a call of a reasoner", async (t) => {
  await aborted(t, "execute", [() => "hold"], 0);
});

test("a signal that was aborted before sends nothing", async (t) => {
  const plane = await Plane.start(t, []);
  const client = new ApprovalClient({ baseURL: plane.url });
  const signal = AbortSignal.abort(WHY);
  const acts = [
    client.getApproval("apr_1", { signal }),
    client.waitForApproval("run-1", { signal }),
    client.humanFeedback("?", { signal }),
    client.execute("node", "perform", {}, { signal }),
  ];
  for (const acting of acts) await assert.rejects(acting, (error) => error === WHY);
  assert.equal(plane.seen.length, 0);
});

test("one signal may end any number of calls, and is not taken for a leak", async (t) => {
  const warnings: Error[] = [];
  const warned = (warning: Error): void => void warnings.push(warning);
  process.on("warning", warned);
  t.after(() => process.off("warning", warned));
  const acts = Array.from({ length: 40 }, () => () => "hold" as const);
  const plane = await Plane.start(t, acts);
  const client = new ApprovalClient({ baseURL: plane.url });
  const controller = new AbortController();
  const { signal } = controller;
  const waits = acts.map(() => client.getApprovalStatus("run-1", { waitSeconds: 60, signal }));
  const pauses = acts.map(() => sleep(1e12, signal));
  const ended = Promise.allSettled([...waits, ...pauses]);
  await plane.request(acts.length - 1);
  controller.abort(WHY);
  for (const one of await ended) assert.deepEqual(one, { status: "rejected", reason: WHY });
  assert.deepEqual(warnings, []);
});

test("work within a time ends by the time, by the caller or by itself, and leaves nothing", async () => {
  const forever = (signal: AbortSignal): Promise<void> => sleep(Infinity, signal);
  await assert.rejects(withTimeout(10, undefined, forever), TimeIsUp);
  const controller = new AbortController();
  const acting = withTimeout(1e12, controller.signal, forever);
  controller.abort(WHY);
  await assert.rejects(acting, (error) => error === WHY);
  assert.equal(await withTimeout(1e12, new AbortController().signal, async () => 7), 7);
  await assert.rejects(sleep(1e12, controller.signal), (error) => error === WHY);
  // Were a timer left, this file's process would not end by itself.
});

test("who waits no more is not told", () => {
  const controller = new AbortController();
  const told: number[] = [];
  const tell = (): number => told.push(told.length);
  const forgets = [onAbort(controller.signal, tell), onAbort(controller.signal, tell), onAbort(undefined, tell)];
  forgets[0]?.();
  controller.abort(WHY);
  for (const forget of forgets) forget();
  assert.deepEqual(told, [0]);
});

test("a place in a queue is given up, and nobody else's is lost", async () => {
  const slots = new Slots(1);
  const leave = await slots.enter();
  const controller = new AbortController();
  const second = slots.enter(controller.signal);
  const third = slots.enter();
  controller.abort(WHY);
  await assert.rejects(second, (error) => error === WHY);
  leave();
  (await third)();
  (await slots.enter())();
});
