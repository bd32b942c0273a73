import assert from "node:assert/strict";
import { test } from "node:test";
import { type Callback, NoExecution, RequestConflict, WaitTimeout } from "./errors.js";
import { conflict, refused } from "./desk.js";
import { scene } from "./support.js";

for (const callback of ["push", "pull", "auto"] satisfies Callback[]) {
  test(`a pause is resumed where answers come by ${callback}`, async (context) => {
    const { plane, url } = await scene(
      context,
      (agent) => {
        agent.reasoner("review", async () => {
          const result = await agent.pause({ approvalRequestId: "q", title: "Pay?", payload: { amount: 3 } });
          return [result.decision, result.approved, result.feedback, result.data, result.round];
        });
      },
      { callback },
    );
    assert.equal((await plane.dispatch(url, "review", "run-1")).status, 202);
    const approval = await plane.pending("run-1");
    assert.equal(approval.callbackUrl !== undefined, callback !== "pull");
    const told = await plane.decide(approval, "approved", { feedback: "fine", response: { by: "me" } });
    if (callback === "push") assert.deepEqual(told, { resolved: true });
    const { reported } = await plane.ended("run-1");
    assert.equal(reported["status"], "succeeded");
    assert.deepEqual(reported["result"], ["approved", true, "fine", { by: "me" }, 1]);
  });
}

test("an answer that comes before the reply to its ask is not lost", async (context) => {
  const { plane, url } = await scene(
    context,
    (agent) => {
      agent.reasoner("review", async () => (await agent.pause({ approvalRequestId: "q" })).decision);
    },
    { callback: "push" },
  );
  plane.instead.push(async ({ path, method, body, headers }) => {
    if (!path.endsWith("/request-approval")) return undefined;
    const reply = plane.desk.answer(method, path, body, Number(headers["x-holdshort-fence"]));
    const [approval] = plane.desk.approvals;
    assert.ok(approval);
    assert.deepEqual(await plane.decide(approval, "approved"), { resolved: true });
    return reply;
  });
  await plane.dispatch(url, "review", "run-1");
  assert.equal((await plane.ended("run-1")).reported["result"], "approved");
});

test("a push and a held call that bring the same answer wake a pause once", async (context) => {
  let woken = 0;
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("review", async () => {
      const { decision } = await agent.pause({ approvalRequestId: "q" });
      woken += 1;
      return decision;
    });
  });
  await plane.dispatch(url, "review", "run-1");
  const approval = await plane.pending("run-1");
  await plane.until(() => plane.sent("/approvals/wait").length > 0);
  const pushes = await Promise.all([plane.decide(approval, "approved"), plane.push(approval), plane.push(approval)]);
  assert.deepEqual(pushes, [{ resolved: true }, { resolved: true }, { resolved: true }]);
  await plane.ended("run-1");
  assert.equal(woken, 1);
});

test("one held call serves all pauses of a process", async (context) => {
  const { plane, url } = await scene(
    context,
    (agent) => {
      agent.reasoner("review", async () => (await agent.pause({ approvalRequestId: "q" })).decision);
    },
    { callback: "pull" },
  );
  const runs = Array.from({ length: 30 }, (_, at) => `run-${at}`);
  await Promise.all(runs.map((run) => plane.dispatch(url, "review", run)));
  await plane.until(() =>
    plane.sent("/approvals/wait").some(({ body }) => (body["approval_ids"] as string[]).length === 30),
  );
  for (const approval of plane.desk.approvals) plane.desk.decide(approval, "approved");
  await Promise.all(runs.map((run) => plane.ended(run)));
  assert.ok(plane.sent("/approvals/wait").length < 15);
});

test("an agent that may not be called back waits by the held call alone", async (context) => {
  const { plane, url, log } = await scene(context, (agent) => {
    agent.reasoner("review", async () => (await agent.pause({ approvalRequestId: "q" })).decision);
  });
  plane.instead.push(({ path, body }) =>
    path.endsWith("/request-approval") && body["callback_url"] !== undefined
      ? refused(422, "callback_url_refused")
      : undefined,
  );
  await plane.dispatch(url, "review", "run-1");
  const approval = await plane.pending("run-1");
  assert.equal(approval.callbackUrl, undefined);
  await plane.decide(approval, "approved");
  assert.equal((await plane.ended("run-1")).reported["result"], "approved");
  assert.ok(log.lines.some((line) => line.includes("without callbacks")));
});

test("a rejection is returned, and the code that cleans up can ask nothing new", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("review", async () => {
      const { rejected, feedback } = await agent.pause({ approvalRequestId: "q" });
      const again = await agent.pause({ approvalRequestId: "other" }).catch((error: Error) => error.name);
      return [rejected, feedback, again];
    });
  });
  await plane.dispatch(url, "review", "run-1");
  await plane.decide(await plane.pending("run-1"), "rejected", { feedback: "not this year" });
  assert.deepEqual((await plane.ended("run-1")).reported["result"], [true, "not this year", "ExecutionFinished"]);
});

test("changes that are wanted open the next round of the same id", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("review", async () => {
      let result = await agent.pause({ approvalRequestId: "q", payload: 1 });
      while (result.changesRequested) result = await agent.pause({ approvalRequestId: "q", payload: result.round + 1 });
      return [result.decision, result.round];
    });
  });
  await plane.dispatch(url, "review", "run-1");
  await plane.decide(await plane.pending("run-1"), "request_changes");
  await plane.decide(await plane.pending("run-1"), "approved");
  assert.deepEqual((await plane.ended("run-1")).reported["result"], ["approved", 2]);
});

test("a pause that failed does not count: trying again asks the same question", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("review", async () => {
      const first = await agent.pause({ payload: 1 }).catch((error: Error) => error.name);
      return [first, (await agent.pause({ payload: 1 })).approvalRequestId];
    });
  });
  let times = 0;
  plane.instead.push(({ path }) => {
    if (!path.endsWith("/request-approval") || times > 0) return undefined;
    times += 1;
    return conflict("approval_request_conflict");
  });
  await plane.dispatch(url, "review", "run-1");
  await plane.decide(await plane.pending("run-1"), "approved");
  assert.deepEqual((await plane.ended("run-1")).reported["result"], ["RequestConflict", "pause:review:1"]);
  assert.equal(RequestConflict.code, "approval_request_conflict");
});

test("when its own time is up, a pause is what the server says stands", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("expires", async () => (await agent.pause({ approvalRequestId: "q", timeoutMs: 50 })).decision);
  });
  plane.instead.push(({ path }) => {
    const [first, second] = plane.desk.approvals;
    // At the last moment a person was faster.
    if (path.endsWith("/expire") && second !== undefined) plane.desk.decide(second, "approved");
    assert.ok(first !== undefined || !path.endsWith("/expire"));
    return undefined;
  });
  await plane.dispatch(url, "expires", "run-1");
  assert.equal((await plane.ended("run-1")).reported["result"], "expired");
  await plane.dispatch(url, "expires", "run-2");
  assert.equal((await plane.ended("run-2")).reported["result"], "approved");
});

test("a wait for a question that was asked before finds it, and gives up when its time is up", async (context) => {
  const { plane, agent } = await scene(context, () => undefined);
  const asked = { approval_request_id: "q", round: 1 };
  plane.desk.execution("run-1");
  plane.desk.answer("POST", "/executions/run-1/request-approval", asked, undefined);
  await assert.rejects(agent.waitForResume("q", { timeoutMs: 30 }), WaitTimeout);
  const given = new AbortController();
  const waiting = agent.waitForResume("q", { signal: given.signal });
  given.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
  const found = agent.waitForResume("q");
  const [approval] = plane.desk.approvals;
  assert.ok(approval);
  await plane.until(() => approval.callbackUrl);
  await plane.decide(approval, "approved");
  assert.equal((await found).executionId, "run-1");
  assert.equal((await agent.waitForResume("q")).decision, "approved");
  await assert.rejects(agent.waitForResume("nobody"), { name: "NotFound", code: "no_approval_request" });
  plane.desk.answer("POST", "/executions/run-2/request-approval", asked, undefined);
  plane.desk.answer("POST", "/executions/run-3/request-approval", asked, undefined);
  await assert.rejects(agent.waitForResume("q"), { name: "AmbiguousRequestId" });
});

test("outside a run a pause needs the name of one", async (context) => {
  const { plane, agent } = await scene(context, () => undefined);
  await assert.rejects(agent.pause({ approvalRequestId: "q" }), NoExecution);
  const asked = agent.pause({ approvalRequestId: "q", executionId: "run-1" });
  await plane.decide(await plane.pending("run-1"), "approved");
  assert.equal((await asked).approved, true);
});
