import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, type Callback, type Resume, type Run } from "../../src/agent.js";
import { CallbackUnknown, Conflict } from "./errors.js";
import { STALE } from "./plane.js";
import { gate, post, Said, scene } from "./support.js";

test("an agent, a reasoner and their options are checked when they are made", () => {
  const options = { nodeId: "node-1", controlPlaneURL: "http://127.0.0.1:1", log: new Said() };
  assert.throws(() => new Agent({ ...options, callback: "both" as Callback }), TypeError);
  assert.throws(() => new Agent({ ...options, nodeId: "node 1" }), TypeError);
  assert.throws(() => new Agent({ ...options, controlPlaneURL: "nowhere" }), { name: "ConnectionFailed" });
  assert.throws(() => new Agent({ ...options, apiKey: "two words" }), { name: "KeyRefused" });
  const agent = new Agent(options);
  agent.reasoner("known", () => 1);
  assert.throws(() => agent.reasoner("known", () => 1), TypeError);
  assert.throws(() => agent.reasoner("a b", () => 1), TypeError);
  assert.throws(() => agent.reasoner("limit", { timeoutSeconds: 0 }, () => 1), TypeError);
  assert.throws(() => agent.reasoner("resume", { resume: "never" as Resume }, () => 1), TypeError);
  assert.throws(() => agent.reasoner("none", undefined as unknown as () => 1), TypeError);
});

test("answers that are to be pushed need an address", async (context) => {
  const { plane } = await scene(context, () => undefined);
  const agent = new Agent({ nodeId: "node-1", controlPlaneURL: plane.url, callback: "push", log: new Said() });
  await assert.rejects(agent.pause({ executionId: "run-1" }), CallbackUnknown);
  assert.deepEqual(plane.sent("/request-approval"), []);
});

test("who is not the run's own code may not ask for it while another process has it", async (context) => {
  const { plane, agent } = await scene(context, () => undefined);
  plane.instead.push(({ path }) => (path.endsWith("/request-approval") ? STALE : undefined));
  await assert.rejects(agent.pause({ executionId: "run-1" }), (error: Error) => {
    // It ends nobody's run.
    return error instanceof Conflict && /only the process that was given this run/.test(error.message);
  });
});

test("a run that is over is answered as it ended", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", () => 1);
  });
  const ended = [
    ["succeeded", 200, undefined],
    ["failed", 500, "run_failed"],
    ["timeout", 500, "execution_timeout"],
    ["cancelled", 409, "execution_cancelled"],
  ] as const;
  for (const [status, answered, code] of ended) {
    const execution = plane.desk.execution(`run-${status}`);
    execution.status = status;
    execution.reason = "as it was given";
    const answer = await post(`${url}/reasoners/work`, {}, { "x-execution-id": execution.id });
    assert.deepEqual([answer.status, answer.body["error"]], [answered, code]);
    assert.equal(answer.body["execution_status"] ?? answer.body["status"], status);
  }
});

test("a run's methods work from code that nothing leads back to it from", async (context) => {
  const over = gate();
  let run: Run | undefined;
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", async (_, own) => {
      run = own;
      await over.opened;
    });
  });
  await plane.dispatch(url, "work", "run-1", { input: { any: 1 } });
  const outside = await plane.until(() => run);
  assert.deepEqual([outside.executionId, outside.input], ["run-1", { any: 1 }]);
  assert.equal(await outside.branch("b", () => outside.step("s", () => 1)), 1);
  const asked = outside.ask("Go on?", { kind: "yes_no" });
  await plane.decide(await plane.pending("run-1"), "approved", { response: { values: "no" } });
  assert.deepEqual([(await asked).values, (await asked).approvalRequestId], ["no", "pause:work:1"]);
  assert.equal((await outside.waitForResume("pause:work:1")).decision, "approved");
  over.open();
  await plane.ended("run-1");
  assert.deepEqual(
    plane.desk.execution("run-1").steps.map(({ previous }) => previous),
    ["b:1"],
  );
});

test("outside a run a note is dropped and a question for a person is asked in nobody's name", async (context) => {
  const { plane, agent, log } = await scene(context, () => undefined);
  agent.note("to nobody");
  assert.ok(log.lines.some((line) => line.includes("a note outside a run")));
  plane.instead.push(({ path }) =>
    path === "/human-feedback" ? { status: 409, body: { error: "duplicate_request", message: "taken" } } : undefined,
  );
  await assert.rejects(agent.humanFeedback("?", { uniqueId: "u" }), { name: "DuplicateRequest" });
  assert.equal(plane.sent("/human-feedback")[0]?.body["execution_id"], undefined);
});
