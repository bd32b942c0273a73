import assert from "node:assert/strict";
import { test } from "node:test";
import { Child } from "./child.js";
import { HandedBack } from "./errors.js";
import { Plane } from "./plane.js";
import { Agent } from "../../src/agent.js";
import { gate, post, Said, scene } from "./support.js";

/** Where nobody listens. */
const NOBODY = "http://127.0.0.1:1";

test("by SIGTERM a process hands back what waits, says that it is gone, and ends", async (context) => {
  const plane = await Plane.start(context);
  const child = await Child.start(context, plane);
  await plane.dispatch(child.url, "perform", "run-1", { input: { script: [{ pause: { payload: 1 } }] } });
  await plane.pending("run-1");
  assert.equal(await child.end("SIGTERM"), 0);
  assert.deepEqual(plane.desk.handedBack, ["run-1"]);
  assert.deepEqual(plane.sent("/run-1/status"), []);
  assert.equal(plane.desk.nodes.size, 0);
});

test("what runs may finish, what waits is handed back, and nothing new is taken", async (context) => {
  const held = gate();
  const began = gate();
  const { plane, agent, url, stop } = await scene(context, (served) => {
    served.reasoner("review", async () => (await served.pause({ approvalRequestId: "q" })).decision);
    served.reasoner("work", async () => {
      began.open();
      await held.opened;
      return "finished";
    });
  });
  await plane.dispatch(url, "review", "run-1");
  await plane.dispatch(url, "work", "run-2");
  await plane.pending("run-1");
  await began.opened;
  const stopped = stop(30);
  await plane.until(() => plane.desk.handedBack.includes("run-1"));
  const refused = await plane.dispatch(url, "work", "run-3");
  assert.deepEqual([refused.status, refused.headers.get("retry-after")], [503, "1"]);
  assert.equal(((await refused.json()) as { error: string }).error, "handed_back");
  const health = (await (await fetch(`${url}/health`)).json()) as { status: string };
  assert.equal(health.status, "draining");
  held.open();
  await stopped;
  assert.equal((await plane.ended("run-2")).reported["result"], "finished");
  assert.deepEqual(plane.sent("/run-1/status"), []);
  assert.equal(agent.registered, false);
});

test("a run that does not finish in time is handed back, and told so", async (context) => {
  const began = gate();
  let reason: unknown;
  const { plane, url, stop } = await scene(context, (agent) => {
    agent.reasoner("work", async (_, run) => {
      began.open();
      await new Promise((resolve) => {
        run.signal.addEventListener("abort", resolve, { once: true });
      });
      reason = run.signal.reason;
    });
  });
  await plane.dispatch(url, "work", "run-1");
  await began.opened;
  await stop(0);
  assert.ok(reason instanceof HandedBack);
  assert.deepEqual(plane.desk.handedBack, ["run-1"]);
  assert.deepEqual(plane.sent("/run-1/status"), []);
});

test("code that looks at nothing does not keep a process from stopping", async (context) => {
  const began = gate();
  const held = gate();
  const { plane, url, stop } = await scene(context, (agent) => {
    agent.reasoner("work", async () => {
      began.open();
      await held.opened;
    });
  });
  await plane.dispatch(url, "work", "run-1");
  await began.opened;
  await stop(0);
  assert.deepEqual(plane.desk.handedBack, ["run-1"]);
  held.open();
});

test("a direct call that waits is answered that it goes on elsewhere", async (context) => {
  const { plane, url, stop } = await scene(context, (agent) => {
    agent.reasoner("review", async () => (await agent.pause({ approvalRequestId: "q" })).decision);
  });
  const called = post(`${url}/reasoners/review`, {}, { "x-execution-id": "run-1" });
  await plane.pending("run-1");
  await stop();
  const { status, body } = await called;
  assert.deepEqual([status, body["error"], body["execution_status"]], [503, "handed_back", "waiting"]);
  assert.deepEqual(plane.sent("/run-1/status"), []);
});

test("a call whose run the control plane does not know yet is answered when the agent stops", async (context) => {
  const { plane, url, stop } = await scene(context, (agent) => {
    agent.reasoner("work", () => 1);
  });
  plane.instead.push(({ path }) => (path === "/executions" ? { status: 503, body: {} } : undefined));
  const called = post(`${url}/reasoners/work`, {});
  await plane.until(() => plane.sent("/executions").length > 0);
  await stop(0);
  const { status, body } = await called;
  assert.deepEqual([status, body["error"]], [503, "handed_back"]);
});

test("an agent that was stopped can be started again, as another instance", async (context) => {
  const { plane, agent, url } = await scene(context, (served) => {
    served.reasoner("work", () => 1);
  });
  await agent.stop();
  assert.equal(plane.desk.nodes.size, 0);
  await agent.start();
  await plane.dispatch(url, "work", "run-1");
  await plane.ended("run-1");
  const [first, second] = plane.sent("/nodes/register").map(({ body }) => body["instance_id"]);
  assert.notEqual(first, second);
});

test("an agent that is stopped before it could register stops", async () => {
  const agent = new Agent({ nodeId: "node-1", controlPlaneURL: NOBODY, callbackURL: NOBODY, log: new Said() });
  await agent.start();
  const registered = agent.whenRegistered();
  await agent.stop({ drainSeconds: 0 });
  assert.equal(await registered, false);
  assert.equal(await agent.whenRegistered(), false);
});

test("an agent registers late where the control plane comes late", async (context) => {
  let away = 3;
  const plane = await Plane.start(context);
  plane.instead.push(() => (away-- > 0 ? { status: 503, body: {} } : undefined));
  const child = await Child.start(context, plane);
  assert.equal(await child.end("SIGTERM"), 0);
});
