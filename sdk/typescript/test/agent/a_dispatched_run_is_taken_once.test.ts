import assert from "node:assert/strict";
import { test } from "node:test";
import { gate, post, scene } from "./support.js";

test("a dispatch is answered before its run has ended, and taken once however often it comes", async (context) => {
  let began = 0;
  const held = gate();
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", async () => {
      began += 1;
      await held.opened;
      return began;
    });
  });
  for (let times = 0; times < 3; times += 1) {
    const answer = await plane.dispatch(url, "work", "run-1", { fence: 4 });
    assert.equal(answer.status, 202);
    assert.deepEqual(await answer.json(), { status: "processing", execution_id: "run-1" });
  }
  held.open();
  assert.equal((await plane.ended("run-1")).reported["result"], 1);
  // Its answer was lost: it comes again when the run is over.
  assert.equal((await plane.dispatch(url, "work", "run-1", { fence: 4 })).status, 202);
  assert.equal(began, 1);
  assert.equal(plane.sent("/run-1/status").length, 1);
});

test("a run that is dispatched again while it goes on here goes on under the new fence", async (context) => {
  const held = gate();
  let began = 0;
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", async () => {
      began += 1;
      await held.opened;
    });
  });
  await plane.dispatch(url, "work", "run-1", { fence: 1 });
  await plane.dispatch(url, "work", "run-1", { fence: 2 });
  held.open();
  await plane.ended("run-1");
  assert.equal(plane.sent("/run-1/status")[0]?.headers["x-holdshort-fence"], "2");
  assert.equal(began, 1);
});

test("a refusal that a later fence made untrue is not believed", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", () => agent.step("s", () => 1));
  });
  plane.instead.push(async ({ method, path, headers }) => {
    if (method !== "POST" || !path.endsWith("/steps") || headers["x-holdshort-fence"] !== "1") return undefined;
    await plane.dispatch(url, "work", "run-1", { fence: 2 });
    return undefined;
  });
  await plane.dispatch(url, "work", "run-1", { fence: 1 });
  assert.equal((await plane.ended("run-1")).reported["status"], "succeeded");
});

test("a run that is meant for another process at this address is not taken", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", () => 1);
  });
  const answer = await plane.dispatch(url, "work", "run-1", { headers: { "x-holdshort-instance": "gone" } });
  assert.deepEqual([answer.status, ((await answer.json()) as { error: string }).error], [503, "other_instance"]);
  const [instanceId] = plane.desk.nodes.keys();
  const meant = await plane.dispatch(url, "work", "run-1", { headers: { "x-holdshort-instance": instanceId ?? "" } });
  assert.equal(meant.status, 202);
  await plane.ended("run-1");
});

test("a cancellation of an earlier dispatch does not reach the later one", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("review", async () => (await agent.pause({ approvalRequestId: "q" })).decision);
  });
  await plane.dispatch(url, "review", "run-1", { fence: 2 });
  await plane.pending("run-1");
  const cancel = `${url}/_internal/executions/run-1/cancel`;
  const early = await post(cancel, {}, { "x-holdshort-fence": "1" });
  assert.deepEqual([early.status, early.body["error"], early.body["fence"]], [409, "stale_instance", 2]);
  assert.equal((await post(cancel, {})).status, 422);
  assert.equal((await post(cancel, [], { "x-holdshort-fence": "2" })).status, 422);
  assert.equal((await post(cancel, "{", { "x-holdshort-fence": "2" })).status, 422);
  const other = await post(`${url}/_internal/executions/run-9/cancel`, {}, { "x-holdshort-fence": "1" });
  assert.deepEqual([other.status, other.body["error"]], [404, "execution_not_found"]);
  await plane.decide(await plane.pending("run-1"), "approved");
  assert.equal((await plane.ended("run-1")).reported["result"], "approved");
});

test("the instance registers what it serves, and again when it counts as unknown", async (context) => {
  const { plane, agent, url } = await scene(
    context,
    (served) => {
      served.reasoner(
        "review",
        { timeoutSeconds: 60, resume: "at_start" },
        async () => (await served.pause()).decision,
      );
    },
    { version: "1.2.3", maxConcurrent: 5 },
  );
  const [registered] = plane.sent("/nodes/register");
  const { instance_id: _, ...said } = registered?.body ?? {};
  assert.deepEqual(said, {
    node_id: "node-1",
    base_url: url,
    version: "1.2.3",
    reasoners: [{ name: "review", timeout_seconds: 60, resume: "at_start" }],
    features: { replay: true, fence: true },
    lease_seconds: 15,
    max_concurrent: 5,
  });
  await plane.dispatch(url, "review", "run-1");
  await plane.pending("run-1");
  // The control plane took this process for gone: the run that waits is given up.
  plane.desk.nodes.clear();
  agent.reasoner("later", () => 1);
  await plane.until(() => plane.sent("/nodes/register").length === 2);
  const names = (plane.sent("/nodes/register")[1]?.body["reasoners"] as { name: string }[]).map(({ name }) => name);
  assert.deepEqual(names, ["review", "later"]);
});

test("a process that counted as gone gives up what waits, and keeps what works", async (context) => {
  const held = gate();
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("review", async () => (await agent.pause({ approvalRequestId: "q" })).decision);
    agent.reasoner("work", () => held.opened);
  });
  // The next sign of life is told that nobody knows it.
  await plane.dispatch(url, "review", "run-1");
  await plane.dispatch(url, "work", "run-2");
  await plane.pending("run-1");
  plane.desk.nodes.clear();
  await plane.until(() => plane.sent("/nodes/register").length === 2);
  await plane.until(() => plane.desk.handedBack.includes("run-1"));
  held.open();
  assert.equal((await plane.ended("run-2")).reported["status"], "succeeded");
  assert.deepEqual(plane.sent("/run-1/status"), []);
});
