import assert from "node:assert/strict";
import { test } from "node:test";
import { utf8, base64 } from "../../src/bytes.js";
import { seal } from "../../src/seals.js";
import type { Plane } from "./plane.js";
import { gate, post, scene } from "./support.js";

/** Lets the plane keep one short-lived question, answered when the gate is open. */
function keepsQuestion(plane: Plane, answered: Promise<string>): { withdrawn: () => boolean } {
  let publicKey = "";
  let withdrawn = false;
  plane.instead.push(async ({ method, path, body }) => {
    if (!path.startsWith("/human-feedback")) return undefined;
    if (method === "DELETE") {
      withdrawn = true;
      return { status: 200, body: { unique_id: "u", outcome: "cancelled" } };
    }
    if (method === "POST") {
      publicKey = body["public_key"] as string;
      return { status: 200, body: { unique_id: "u" } };
    }
    return { status: 200, body: { outcome: "answered", sealed: await seal(publicKey, "u", await answered) } };
  });
  return { withdrawn: () => withdrawn };
}

test("a short-lived question is asked in the name of its run, and its time is no work", async (context) => {
  const answer = gate();
  const { plane, url } = await scene(context, (agent) => {
    const options = { timeoutSeconds: 0.1 };
    agent.reasoner("ask", options, () => agent.humanFeedback("The code?", { uniqueId: "u", kind: "secret" }));
    agent.reasoner(
      "work",
      options,
      (_, run) =>
        new Promise((resolve) => {
          run.signal.addEventListener("abort", resolve, { once: true });
        }),
    );
  });
  keepsQuestion(
    plane,
    answer.opened.then(() => "123456"),
  );
  await plane.dispatch(url, "ask", "run-1");
  await plane.until(() => plane.sent("/answer").length > 0);
  await plane.dispatch(url, "work", "run-2");
  // The limit of the second, which began later, has passed.
  await plane.ended("run-2");
  answer.open();
  assert.equal((await plane.ended("run-1")).reported["result"], "123456");
  assert.equal(plane.sent("/human-feedback")[0]?.body["execution_id"], "run-1");
});

test("a run that is cancelled withdraws its question", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("ask", () => agent.humanFeedback("The code?", { uniqueId: "u" }));
  });
  const question = keepsQuestion(plane, new Promise(() => undefined));
  await plane.dispatch(url, "ask", "run-1");
  await plane.until(() => plane.sent("/answer").length > 0);
  await post(`${url}/_internal/executions/run-1/cancel`, {}, { "x-holdshort-fence": "1" });
  assert.equal((await plane.ended("run-1")).reported["status"], "cancelled");
  await plane.until(question.withdrawn);
});

test("notes are kept in order before the end is told, and a refused one takes no other along", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", (_, run) => {
      for (const word of ["one", "two", "three"]) run.note(word, ["tag"]);
      run.note(1n as unknown as string);
      agent.note("four");
    });
  });
  plane.instead.push(({ path, body }) =>
    path.endsWith("/notes") && body["message"] === "two"
      ? { status: 422, body: { error: "invalid_field" } }
      : undefined,
  );
  await plane.dispatch(url, "work", "run-1");
  await plane.ended("run-1");
  const { notes } = plane.desk.execution("run-1");
  assert.deepEqual(
    notes.map(({ message, tags }) => [message, tags]),
    [
      ["one", ["tag"]],
      ["three", ["tag"]],
      ["four", []],
    ],
  );
  const paths = plane.seen.map(({ path }) => path);
  assert.ok(paths.lastIndexOf("/executions/run-1/notes") < paths.indexOf("/executions/run-1/status"));
  assert.equal(base64(utf8("")), "");
});
