import assert from "node:assert/strict";
import { test } from "node:test";
import { checkForm, fitting } from "../../src/agent/forms.js";
import { resultFrom } from "../../src/result.js";
import type { Form } from "../../src/agent.js";
import { allHold, vectors } from "../pure/vectors.js";
import { InvalidField, ValuesInvalid } from "./errors.js";
import { scene } from "./support.js";

interface Case {
  readonly name: string;
  readonly form: unknown;
  readonly values?: unknown;
  readonly accepted?: unknown;
  readonly code?: string;
}

const NAMES: Readonly<Record<string, string>> = { yes_label: "yesLabel", no_label: "noLabel" };

/** The form as it is called here. */
function formOf(form: unknown): unknown {
  if (typeof form !== "object" || form === null) return form;
  return Object.fromEntries(Object.entries(form).map(([name, value]) => [NAMES[name] ?? name, value]));
}

function answered(form: Form, data: unknown): unknown {
  const said = {
    decision: "approved",
    feedback: "",
    executionId: "run-1",
    approvalRequestId: "q",
    approvalId: "apr_1",
  };
  return fitting(form, resultFrom({ ...said, round: 1, data })).values;
}

// A JSON Schema is checked by the control plane.
const cases = vectors<{ cases: readonly Case[] }>("forms").cases.filter(
  ({ form }) => typeof form !== "object" || form === null || !("schema" in form),
);

allHold(
  "forms",
  33,
  cases.map((each) => [each.name, each]),
  ({ form: wire, values, accepted, code }) => {
    const form = formOf(wire);
    if (code === "invalid_field") return void assert.throws(() => checkForm(form), InvalidField);
    checkForm(form);
    if (code !== undefined)
      return void assert.throws(() => answered(form, values === undefined ? null : { values }), ValuesInvalid);
    assert.deepEqual(answered(form, { values: accepted }), accepted);
  },
);

test("a question is asked with its form, and its answer handed over when it fits", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("ask", async () => {
      const city = await agent.ask("Where to?", { options: ["Basel", "Bern"], approvalRequestId: "city" });
      const wrong = await agent
        .ask("Sure?", { kind: "yes_no", approvalRequestId: "sure" })
        .catch((error: Error) => error.name);
      return [city.approved, city.values, wrong];
    });
  });
  await plane.dispatch(url, "ask", "run-1");
  await plane.decide(await plane.pending("run-1"), "approved", { response: { values: "Bern" } });
  await plane.decide(await plane.pending("run-1"), "approved", { response: { values: "perhaps" } });
  assert.deepEqual((await plane.ended("run-1")).reported["result"], [true, "Bern", "ValuesInvalid"]);
  const [asked] = plane.sent("/request-approval");
  assert.deepEqual(
    [asked?.body["title"], asked?.body["form"]],
    ["Where to?", { kind: "multiple_choice", options: ["Basel", "Bern"] }],
  );
});

test("what nobody could answer is not asked", async (context) => {
  const { plane, agent } = await scene(context, () => undefined);
  const about = { executionId: "run-1" };
  for (const options of [
    { options: [] },
    { kind: "form" as const },
    { schema: {}, yesLabel: "y" },
    { options: ["a"], schema: {} },
  ]) {
    await assert.rejects(agent.ask("?", { ...about, ...options }), InvalidField);
  }
  await assert.rejects(agent.pause({ ...about, form: { kind: "text", editable: true } }), InvalidField);
  assert.deepEqual(plane.sent("/request-approval"), []);
});

test("a long question is shown below a title that is its beginning", async (context) => {
  const { plane, agent } = await scene(context, () => undefined);
  const question = `${"long ".repeat(50)}\nand more`;
  const asked = agent.ask(question, { executionId: "run-1", description: "why" });
  await plane.decide(await plane.pending("run-1"), "rejected");
  assert.equal((await asked).values, null);
  const body = plane.sent("/request-approval")[0]?.body;
  assert.equal([...String(body?.["title"])].length, 200);
  assert.equal(body?.["description"], `${question}\n\nwhy`);
});
