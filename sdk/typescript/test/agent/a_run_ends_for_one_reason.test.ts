import assert from "node:assert/strict";
import { test } from "node:test";
import { ExecutionCancelled, ExecutionTimedOut, RunEnded, StaleInstance } from "./errors.js";
import { STALE } from "./plane.js";
import { gate, post, scene } from "./support.js";
import type { Run } from "../../src/agent.js";

const FENCE = { "x-holdshort-fence": "1" };

test("a cancellation reaches the signal, and the code that awaits an answer", async (context) => {
  const seen: unknown[] = [];
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("review", async (_, run) => {
      run.signal.addEventListener("abort", () => seen.push(run.signal.reason));
      try {
        await agent.pause({ approvalRequestId: "q" });
      } catch (error) {
        seen.push(error);
        // Whatever its code goes on with, the run is over.
        for (const further of [agent.pause(), agent.step("s", () => 1), agent.humanFeedback("?", { uniqueId: "u" })]) {
          seen.push(await further.catch((end: unknown) => end));
        }
      }
      return "went on";
    });
  });
  await plane.dispatch(url, "review", "run-1");
  await plane.pending("run-1");
  const answer = await post(`${url}/_internal/executions/run-1/cancel`, { reason: "by an operator" }, FENCE);
  assert.deepEqual([answer.status, answer.body["status"]], [202, "cancelling"]);
  const { reported } = await plane.ended("run-1");
  assert.equal(reported["status"], "cancelled");
  assert.equal(reported["result"], undefined);
  assert.match(String(reported["error"]), /by an operator/);
  assert.equal(seen.length, 5);
  assert.ok(seen.every((end) => end instanceof ExecutionCancelled));
});

test("a cancellation reaches code that awaits a step which goes on", async (context) => {
  const held = gate();
  const began = gate();
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", () =>
      agent.step("slow", async () => {
        began.open();
        await held.opened;
      }),
    );
  });
  await plane.dispatch(url, "work", "run-1");
  await began.opened;
  await post(`${url}/_internal/executions/run-1/cancel`, {}, FENCE);
  held.open();
  assert.equal((await plane.ended("run-1")).reported["status"], "cancelled");
  assert.deepEqual(plane.desk.execution("run-1").steps, []);
});

test("a question that an operator's cancellation took back ends the run", async (context) => {
  const { plane, url } = await scene(
    context,
    (agent) => {
      agent.reasoner("review", async () => {
        await agent.pause({ approvalRequestId: "q" }).catch(() => "swallowed");
        return "went on";
      });
    },
    { callback: "pull" },
  );
  await plane.dispatch(url, "review", "run-1");
  await plane.pending("run-1");
  plane.desk.cancel(plane.desk.execution("run-1"), "by an operator");
  const { reported } = await plane.ended("run-1");
  assert.equal(reported["status"], "cancelled");
});

test("a run that was taken over ends here and writes nothing more", async (context) => {
  const ends: unknown[] = [];
  const over = gate();
  const { plane, url, log } = await scene(context, (agent) => {
    agent.reasoner("work", async (_, run) => {
      for (const name of ["a", "b"]) await run.step(name, () => name).catch((error: unknown) => ends.push(error));
      run.note("never kept");
      over.open();
      return "went on";
    });
  });
  plane.instead.push(({ method, path }) => (method === "POST" && path.endsWith("/steps") ? STALE : undefined));
  await plane.dispatch(url, "work", "run-1");
  await over.opened;
  await plane.until(() => log.lines.some((line) => line.includes("ended here")));
  assert.ok(ends.length === 2 && ends.every((end) => end instanceof StaleInstance));
  assert.deepEqual(plane.sent("/run-1/status"), []);
  assert.equal(plane.sent("/steps").length, 1);
});

test("every call of a dispatched run names its fence, and no other call does", async (context) => {
  const { plane, agent, url } = await scene(context, () => {
    // Registered below.
  });
  agent.reasoner("work", async (_, run) => {
    run.note("a note");
    await run.step("s", () => 1);
    return (await run.pause({ approvalRequestId: "q" })).decision;
  });
  await plane.dispatch(url, "work", "run-1", { fence: 7 });
  await plane.decide(await plane.pending("run-1"), "approved");
  await plane.ended("run-1");
  for (const ending of ["/notes", "/steps", "/request-approval", "/status"]) {
    const [seen] = plane.sent(`/executions/run-1${ending}`);
    assert.equal(seen?.headers["x-holdshort-fence"], "7", ending);
  }
  await agent.execution("run-2", null, (run) => run.step("s", () => 1));
  assert.ok(
    plane.seen.filter(({ path }) => path.includes("run-2")).every(({ headers }) => !("x-holdshort-fence" in headers)),
  );
});

test("a time limit ends work, and stands still while the run waits for people", async (context) => {
  const limit = 0.15;
  const seen: unknown[] = [];
  const { plane, url } = await scene(context, (agent) => {
    const options = { timeoutSeconds: limit };
    agent.reasoner("waits", options, async () => (await agent.pause({ approvalRequestId: "q" })).decision);
    agent.reasoner("works", options, async (_, run: Run) => {
      await new Promise((resolve) => {
        run.signal.addEventListener("abort", resolve, { once: true });
      });
      seen.push(run.signal.reason);
      return "too late";
    });
  });
  await plane.dispatch(url, "waits", "run-1");
  await plane.dispatch(url, "works", "run-2");
  // The second run's limit has passed, so that of the first one would have.
  const { reported } = await plane.ended("run-2");
  assert.equal(reported["status"], "timeout");
  assert.ok(seen[0] instanceof ExecutionTimedOut);
  await plane.decide(await plane.pending("run-1"), "approved");
  assert.equal((await plane.ended("run-1")).reported["result"], "approved");
});

test("the time that is left goes before the reasoner's own limit, and may be ended from outside", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner(
      "work",
      { timeoutSeconds: 1000 },
      (_, run) =>
        new Promise((resolve) => {
          run.signal.addEventListener("abort", resolve, { once: true });
        }),
    );
  });
  await plane.dispatch(url, "work", "run-1", { headers: { "x-holdshort-time-left": "0.05" } });
  assert.equal((await plane.ended("run-1")).reported["status"], "timeout");
  await plane.dispatch(url, "work", "run-2");
  await post(`${url}/_internal/executions/run-2/cancel`, { reason: "execution_timeout" }, FENCE);
  assert.equal((await plane.ended("run-2")).reported["status"], "timeout");
});

test("a run that fails says why, whatever it throws", async (context) => {
  const unspeakable = {
    toString(): never {
      throw new Error("no words");
    },
  };
  const thrown: unknown[] = [
    new TypeError("no such thing"),
    "just words",
    undefined,
    unspeakable,
    new Error("half \ud800 and \0"),
  ];
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("fail", (input: { readonly which: number }) => {
      throw thrown[input.which];
    });
  });
  const said: unknown[] = [];
  for (const which of thrown.keys()) {
    await plane.dispatch(url, "fail", `run-${which}`, { input: { which } });
    const { reported } = await plane.ended(`run-${which}`);
    assert.equal(reported["status"], "failed");
    said.push(reported["error"]);
  }
  assert.deepEqual(said, [
    "TypeError: no such thing",
    "Error: just words",
    "Error: undefined",
    "Error: object",
    "Error: half ? and ?",
  ]);
});

test("a result that is no JSON fails the run, so that it can end", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", () => ({ amount: Number.NaN }));
  });
  await plane.dispatch(url, "work", "run-1");
  const { reported } = await plane.ended("run-1");
  assert.equal(reported["status"], "failed");
  assert.match(String(reported["error"]), /TypeError: the result of the run is no JSON/);
});

test("what a run leaves behind does nothing more", async (context) => {
  const over = gate();
  const left: unknown[] = [];
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", (_, run) => {
      const pausing = run.pause({ approvalRequestId: "q" }).catch((error: Error) => left.push(error.name));
      void over.opened.then(async () => {
        left.push(await run.step("late", () => 1).catch((error: Error) => error.name));
      });
      void pausing;
      return "done";
    });
  });
  await plane.dispatch(url, "work", "run-1");
  assert.equal((await plane.ended("run-1")).reported["result"], "done");
  over.open();
  await new Promise(setImmediate);
  assert.deepEqual(left, ["NoExecution", "NoExecution"]);
});

test("a run that the program starts itself can be continued under its id, and ends once", async (context) => {
  const { plane, agent } = await scene(context, () => undefined);
  let did = 0;
  const work = (run: Run): Promise<number> => run.step("once", () => (did += 1));
  assert.equal(await agent.execution("run-1", { any: "input" }, work), 1);
  await assert.rejects(agent.execution("run-1", null, work), { name: "ExecutionFinished" });
  plane.desk.again("run-1");
  assert.equal(await agent.execution("run-1", null, work), 1);
  assert.equal(agent.executionId, undefined);
  await agent.execution(undefined, null, async (run) => {
    assert.equal(agent.executionId, run.executionId);
    agent.note("inside");
  });
  await plane.until(() => plane.sent("/notes").length === 1);
  await assert.rejects(
    agent.execution("run-2", null, () => Promise.reject(new Error("boom"))),
    /boom/,
  );
  assert.equal(plane.desk.execution("run-2").reported?.["status"], "failed");
  assert.ok(!(RunEnded.prototype instanceof Error && did > 1));
});
