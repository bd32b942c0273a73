import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import type { Call } from "../../src/core.js";
import * as routes from "../../src/routes.js";

interface Schema {
  $ref?: string;
  properties?: Record<string, Schema>;
  oneOf?: Schema[];
  anyOf?: Schema[];
  items?: Schema;
}

interface Operation {
  parameters?: { name: string; in: string }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
}

interface Interface {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

const INTERFACE = JSON.parse(
  readFileSync(new URL("../../../../openapi.json", import.meta.url), "utf8"),
) as Interface;

const FORM = { kind: "form", options: ["a"], yesLabel: "y", noLabel: "n", schema: {}, editable: true };
const QUESTION: Required<routes.RequestApprovalPayload> = {
  approvalRequestId: "a",
  approvalRequestUrl: "u",
  callbackUrl: "c",
  callbackSecret: "s",
  expiresInHours: 1,
  title: "t",
  description: "d",
  payload: {},
  onExpiry: "cancel",
  decidedBy: "b",
  round: 1,
  form: FORM,
};
const VERDICT: Required<routes.Verdict> = {
  decision: "approved",
  feedback: "f",
  reason: "r",
  response: {},
  payloadDigest: "d",
  round: 1,
  values: {},
};
const WORDS: Required<routes.FeedbackWords> = {
  uniqueId: "u",
  messageForUser: "m",
  publicKey: "k",
  timeoutSeconds: 5,
  kind: "text",
  options: ["a"],
  yesLabel: "y",
  noLabel: "n",
  executionId: "e",
};
const FILTER = { status: "s", nodeId: "n", executionId: "e", approvalRequestId: "a", q: "q", order: "o", limit: 1 };
const REGISTRATION: Required<routes.Registration> = {
  nodeId: "n",
  baseUrl: "u",
  instanceId: "i",
  version: "v",
  reasoners: [{ name: "r", timeoutSeconds: 1, resume: "at_start", inputSchema: {} }],
  features: { replay: true, fence: true },
  leaseSeconds: 15,
  maxConcurrent: 1,
};

/** Every route with every argument that it takes. */
const CALLS: Record<string, Call<unknown>> = {
  requestApproval: routes.requestApproval("e", QUESTION),
  requestApprovalOfNode: routes.requestApproval("e", QUESTION, "n"),
  getApprovalStatus: routes.getApprovalStatus("e", { approvalRequestId: "a", waitSeconds: 1 }),
  getApprovalStatusOfNode: routes.getApprovalStatus("e", { nodeId: "n" }),
  waitForApprovals: routes.waitForApprovals(["a"], 1),
  listApprovals: routes.listApprovals({ ...FILTER, cursor: "c" }),
  getApproval: routes.getApproval("a"),
  setCallback: routes.setCallback("a", "u", "s"),
  decide: routes.decide("a", VERDICT),
  answerExecution: routes.answerExecution("e", VERDICT, "a"),
  withdraw: routes.withdraw("a"),
  expire: routes.expire("a"),
  createExecution: routes.createExecution("n", "e", { reasoner: "r", input: {}, runId: "g" }),
  getExecution: routes.getExecution("e"),
  listExecutions: routes.listExecutions({ status: "s", nodeId: "n", limit: 1, cursor: "c" }),
  reportStatus: routes.reportStatus("e", "failed", { result: {}, error: "e", reason: "r" }),
  cancelExecution: routes.cancelExecution("e", "r"),
  addNote: routes.addNote("e", "m", "n", ["t"]),
  keepStep: routes.keepStep("e", { name: "n", occurrence: 1, previous: "p", result: {} }),
  listSteps: routes.listSteps("e", 1, 1),
  registerNode: routes.registerNode(REGISTRATION),
  heartbeat: routes.heartbeat("n", "i", "draining"),
  handBack: routes.handBack("n", "i", [{ executionId: "e", fence: 1 }]),
  shutdownNode: routes.shutdownNode("n", "i"),
  executeAsync: routes.executeAsync("n", "r", {}, "k"),
  heldExecute: routes.heldExecute("n", "r", {}, "k", 1),
  askFeedback: routes.askFeedback(WORDS),
  feedbackAnswer: routes.feedbackAnswer("u", 1),
  endFeedback: routes.endFeedback("u"),
  submitFeedback: routes.submitFeedback("u", "r", "s"),
  pendingFeedback: routes.pendingFeedback(),
  sendWebhook: routes.sendWebhook("{}", {}),
};

for (const [name, call] of Object.entries(CALLS)) {
  test(name, () => {
    const operation = operationOf(call);
    const parameters = (operation.parameters ?? []).filter((one) => one.in === "query").map((one) => one.name);
    for (const parameter of Object.keys(call.query ?? {})) assert.ok(parameters.includes(parameter), parameter);
    if (call.body === undefined) return;
    const [content] = Object.values(operation.requestBody?.content ?? {});
    assertKnown(JSON.parse(call.body), content?.schema ?? { properties: {} }, name);
  });
}

test("no route was forgotten", () => {
  const made = Object.keys(routes).filter((name) => name !== "newKey");
  const called = Object.keys(CALLS).map((name) => name.replace(/OfNode$/, ""));
  assert.deepEqual(made.sort(), [...new Set(called)].sort());
});

function operationOf({ method, path }: Call<unknown>): Operation {
  const patterns = Object.keys(INTERFACE.paths).sort((one, other) => one.split("{").length - other.split("{").length);
  for (const pattern of patterns) {
    const operation = INTERFACE.paths[pattern]?.[method.toLowerCase()];
    const matcher = new RegExp(`^${pattern.replace(/\{[a-z_]+\}/g, "[^/]+")}$`);
    if (operation && matcher.test(path)) return operation;
  }
  assert.fail(`${method} ${path} is no route`);
}

/** Every member that is sent is one that the interface names, however deep. */
function assertKnown(value: unknown, schema: Schema, where: string): void {
  const known = resolved(schema);
  if (Array.isArray(value)) {
    for (const one of value) if (known.items) assertKnown(one, known.items, `${where}[]`);
  } else if (typeof value === "object" && value !== null && known.properties) {
    for (const [name, member] of Object.entries(value)) {
      const of = known.properties[name];
      assert.ok(of, `${where}.${name} is unknown`);
      assertKnown(member, of, `${where}.${name}`);
    }
  }
}

function resolved(schema: Schema): Schema {
  if (schema.$ref) return resolved(INTERFACE.components.schemas[schema.$ref.split("/").at(-1) as string] ?? {});
  const choices = (schema.oneOf ?? schema.anyOf ?? []).map(resolved);
  return choices.find((choice) => choice.properties ?? choice.items) ?? schema;
}
