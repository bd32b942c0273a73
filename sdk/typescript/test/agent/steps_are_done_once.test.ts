import assert from "node:assert/strict";
import { test } from "node:test";
import { conflict } from "./desk.js";
import { Child } from "./child.js";
import { Plane } from "./plane.js";
import { gate, scene } from "./support.js";

test("a run whose process is killed does no step twice", async (context) => {
  const plane = await Plane.start(context);
  const script = [
    { step: { name: "a", result: { sum: 1 } } },
    { together: [{ step: { name: "s", result: "x" } }, { step: { name: "s", result: "y" } }] },
    { pause: { payload: 1 } },
    { step: { name: "a", result: 2 } },
  ];
  const first = await Child.start(context, plane);
  await plane.dispatch(first.url, "perform", "run-1", { input: { script } });
  await plane.pending("run-1");
  assert.deepEqual((await first.journal()).sort(), ["a", "s", "s"]);
  await first.end("SIGKILL");
  const second = await Child.start(context, plane);
  await plane.dispatch(second.url, "perform", "run-1");
  await plane.until(() => plane.sent("/request-approval").length === 2);
  await plane.decide(await plane.pending("run-1"), "approved");
  const result = (await plane.ended("run-1")).reported["result"] as [unknown, unknown, { round: number }, unknown];
  assert.deepEqual([result[0], result[1], result[2].round, result[3]], [{ sum: 1 }, ["x", "y"], 1, 2]);
  assert.deepEqual(await second.journal(), ["a"]);
  assert.deepEqual(
    plane.desk.execution("run-1").steps.map(({ name, occurrence, previous }) => [name, occurrence, previous]),
    [
      ["a", 1, ":1"],
      ["s", 1, "0:1"],
      ["s", 2, "1:1"],
      ["a", 2, ":2"],
    ],
  );
});

test("branches keep their steps apart, in whatever order they get along", async (context) => {
  let slow = "left";
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", async () => {
      const other = gate();
      const side = async (name: string): Promise<unknown> => {
        if (name === slow) await other.opened;
        const done = await agent.step("fetch", () => `${name} in try ${slow}`);
        const nested = await agent.branch("deep", () => agent.step("fetch", () => `${name} deep`));
        other.open();
        return [done, nested];
      };
      return await Promise.all(["left", "right"].map((name) => agent.branch(name, () => side(name))));
    });
  });
  await plane.dispatch(url, "work", "run-1");
  const wanted = [
    ["left in try left", "left deep"],
    ["right in try left", "right deep"],
  ];
  assert.deepEqual((await plane.ended("run-1")).reported["result"], wanted);
  slow = "right";
  plane.desk.again("run-1");
  await plane.dispatch(url, "work", "run-1");
  assert.deepEqual((await plane.ended("run-1")).reported["result"], wanted);
  const places = plane.desk.execution("run-1").steps.map(({ previous }) => previous);
  assert.deepEqual(places.sort(), ["left/deep:1", "left:1", "right/deep:1", "right:1"]);
});

test("calls of one name in one turn are known by their order, on every replay", async (context) => {
  let factor = 1;
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", () => Promise.all([1, 2, 3].map((part) => agent.step("part", () => part * factor))));
  });
  await plane.dispatch(url, "work", "run-1");
  assert.deepEqual((await plane.ended("run-1")).reported["result"], [1, 2, 3]);
  factor = 100;
  plane.desk.again("run-1");
  await plane.dispatch(url, "work", "run-1");
  assert.deepEqual((await plane.ended("run-1")).reported["result"], [1, 2, 3]);
});

test("a step beside one of its name that was called at another time is refused, and not done", async (context) => {
  const held = gate();
  let did = 0;
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", async () => {
      const first = agent.step("fetch", async () => {
        await held.opened;
        return "first";
      });
      await Promise.resolve();
      const second = await agent.step("fetch", () => (did += 1)).catch((error: Error) => error.name);
      const elsewhere = await agent.branch("b", () => agent.step("fetch", () => "elsewhere"));
      held.open();
      return [await first, second, elsewhere];
    });
  });
  await plane.dispatch(url, "work", "run-1");
  assert.deepEqual((await plane.ended("run-1")).reported["result"], ["first", "StepsSideBySide", "elsewhere"]);
  assert.equal(did, 0);
});

test("tasks that are woken by one promise call in turns of their own", async (context) => {
  const { agent } = await scene(context, () => undefined);
  const got = await agent.execution(undefined, null, async (run) => {
    const woken = gate();
    const task = async (name: string): Promise<string> => {
      await woken.opened;
      return await run.step("fetch", () => name).catch((error: Error) => error.name);
    };
    const tasks = [task("one"), task("two")];
    setImmediate(woken.open);
    return await Promise.all(tasks);
  });
  assert.deepEqual(got, ["one", "StepsSideBySide"]);
});

test("a replay in which two tasks come to one name together hands out neither's result", async (context) => {
  // In the first try the second task came first, so the step that is stored as the first one is its own.
  let replayed = false;
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", async () => {
      const other = gate();
      const task = async (own: string, waits: boolean): Promise<unknown> => {
        await agent.step(own, () => own);
        if (waits && !replayed) await other.opened;
        const got = await agent.step("fetch", () => `for ${own}`).catch((error: Error) => error.name);
        other.open();
        return got;
      };
      return await Promise.all([task("one", true), task("two", false)]);
    });
  });
  await plane.dispatch(url, "work", "run-1");
  assert.deepEqual((await plane.ended("run-1")).reported["result"], ["for one", "for two"]);
  replayed = true;
  plane.desk.again("run-1");
  await plane.dispatch(url, "work", "run-1");
  assert.deepEqual((await plane.ended("run-1")).reported["result"], ["StepsSideBySide", "StepsSideBySide"]);
});

test("a step that failed is tried again under its number", async (context) => {
  let tries = 0;
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", async () => {
      const flaky = (): number => {
        tries += 1;
        if (tries < 3) throw new Error("not yet");
        return tries;
      };
      for (;;) {
        const result = await agent.step("flaky", flaky).catch(() => undefined);
        if (result !== undefined) return [result, await agent.step("flaky", () => "the next")];
      }
    });
  });
  await plane.dispatch(url, "work", "run-1");
  assert.deepEqual((await plane.ended("run-1")).reported["result"], [3, "the next"]);
  const { steps } = plane.desk.execution("run-1");
  assert.deepEqual(
    steps.map(({ occurrence, previous }) => [occurrence, previous]),
    [
      [1, ":1"],
      [2, ":2"],
    ],
  );
  plane.desk.again("run-1");
  await plane.dispatch(url, "work", "run-1");
  assert.deepEqual((await plane.ended("run-1")).reported["result"], [3, "the next"]);
  assert.equal(tries, 3);
});

test("a step inside a step's function is part of it", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", () => agent.step("outer", () => agent.step("inner", () => 1)));
  });
  await plane.dispatch(url, "work", "run-1");
  assert.equal((await plane.ended("run-1")).reported["result"], 1);
  assert.deepEqual(
    plane.desk.execution("run-1").steps.map(({ name }) => name),
    ["outer"],
  );
});

test("a result is what JSON made of it, the first time too, and what is no JSON is not stored", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", async () => {
      const kept = await agent.step<unknown>("kept", () => ({ at: new Date(0), none: undefined }));
      const nothing = await agent.step<unknown>("nothing", () => undefined);
      const told: string[] = [];
      const wrong = [Number.NaN, 1n, () => 1, "x".repeat(1024 * 1024)];
      for (const value of wrong) await agent.step("wrong", () => value).catch((error: Error) => told.push(error.name));
      return [kept, nothing, told];
    });
  });
  await plane.dispatch(url, "work", "run-1");
  const told = ["TypeError", "TypeError", "TypeError", "StepTooLarge"];
  assert.deepEqual((await plane.ended("run-1")).reported["result"], [{ at: "1970-01-01T00:00:00.000Z" }, null, told]);
  assert.deepEqual(
    plane.desk.execution("run-1").steps.map(({ name }) => name),
    ["kept", "nothing"],
  );
});

test("stored steps are read only where there may be some, and page by page", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", async (input: { readonly upTo: number }) => {
      for (let part = 0; part < input.upTo; part += 1) await agent.step(`part ${part}`, () => part);
      return "done";
    });
  });
  const reads = (): number =>
    plane.seen.filter(({ method, path }) => method === "GET" && path.endsWith("/steps")).length;
  await plane.dispatch(url, "work", "run-1", { input: { upTo: 5 } });
  await plane.ended("run-1");
  assert.equal(reads(), 0);
  plane.desk.again("run-1");
  await plane.dispatch(url, "work", "run-1");
  await plane.ended("run-1");
  assert.equal(reads(), 3);
  assert.equal(plane.desk.execution("run-1").steps.length, 5);
});

test("steps may be taken away under an open run; that is said when it succeeds", async (context) => {
  let done = ["old", "kept"];
  const { plane, url, log } = await scene(context, (agent) => {
    agent.reasoner("work", async () => {
      for (const name of done) await agent.step(name, () => name);
    });
  });
  await plane.dispatch(url, "work", "run-1");
  await plane.ended("run-1");
  done = ["new", "kept"];
  plane.desk.again("run-1");
  await plane.dispatch(url, "work", "run-1");
  assert.equal((await plane.ended("run-1")).reported["status"], "succeeded");
  await plane.until(() => log.lines.some((line) => line.includes('1 of its stored steps: "old"')));
});

test("after a rejection a step is done and returned, and not stored", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", async () => {
      await agent.pause();
      return await agent.step("clean up", () => "clean");
    });
  });
  await plane.dispatch(url, "work", "run-1");
  await plane.decide(await plane.pending("run-1"), "rejected");
  assert.equal((await plane.ended("run-1")).reported["result"], "clean");
  assert.deepEqual(plane.desk.execution("run-1").steps, []);
});

test("a step that stands at another place fails the run", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", async () => {
      await agent.step("a", () => 1).catch(() => "gone on");
      return "went on";
    });
  });
  plane.instead.push(({ method, path }) =>
    method === "POST" && path.endsWith("/steps") ? conflict("step_mismatch") : undefined,
  );
  await plane.dispatch(url, "work", "run-1");
  const { reported } = await plane.ended("run-1");
  assert.deepEqual([reported["status"], reported["reason"]], ["failed", "step_mismatch"]);
});

test("a name that could not be stored is refused before anything is done", async (context) => {
  let did = 0;
  const { agent } = await scene(context, () => undefined);
  await agent.execution(undefined, null, async (run) => {
    for (const name of ["", "x".repeat(201), "a\nb", "\u2028", "\ud800"]) {
      await assert.rejects(
        run.step(name, () => (did += 1)),
        TypeError,
      );
      await assert.rejects(
        run.branch(name, () => (did += 1)),
        TypeError,
      );
    }
    await run.step("😀".repeat(200), () => 1);
  });
  assert.equal(did, 0);
  await assert.rejects(
    agent.step("a", () => 1),
    { name: "NoExecution" },
  );
});

test("a long place is kept as its digest", async (context) => {
  const { plane, agent } = await scene(context, () => undefined);
  await agent.execution("run-1", null, (run) =>
    run.branch("x".repeat(150), () => run.branch("y".repeat(150), () => run.step("a", () => 1))),
  );
  assert.match(String(plane.desk.execution("run-1").steps[0]?.["previous"]), /^~[0-9a-f]{64}$/);
});
