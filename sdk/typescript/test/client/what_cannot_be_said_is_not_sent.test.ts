import assert from "node:assert/strict";
import { test } from "node:test";

import { checkedChoices, checkQuestion } from "../../src/choices.js";
import { apiPath, jsonOf } from "../../src/core.js";
import { ApprovalClient, ConnectionFailed, InvalidField, KeyRefused } from "../../src/index.js";
import { Plane } from "./plane.js";

test("what is no JSON is refused before anything is asked", async (t) => {
  const plane = await Plane.start(t, []);
  const client = new ApprovalClient({ baseURL: plane.url });
  const itself: Record<string, unknown> = {};
  itself["itself"] = itself;
  const payloads = [Number.NaN, { deep: [Infinity] }, 10n, { n: 10n }, itself, () => 1, Symbol("x")];
  for (const payload of payloads) {
    await assert.rejects(client.requestApproval("run-1", { approvalRequestId: "a", payload }), (error) => {
      assert.ok(error instanceof InvalidField);
      assert.equal((error.details["errors"] as { field: string }[])[0]?.field, "payload");
      return true;
    });
  }
  const forever = { approvalRequestId: "a", expiresInHours: Number.NaN };
  await assert.rejects(client.requestApproval("run-1", forever), InvalidField);
  assert.equal(plane.seen.length, 0);
});

test("JSON is written without what is undefined, and null is kept", () => {
  assert.equal(jsonOf({ a: undefined, b: null, c: { d: undefined, e: 0 } }), '{"b":null,"c":{"e":0}}');
});

test("an id that would name another route is refused", async () => {
  const client = new ApprovalClient({ baseURL: "http://127.0.0.1:9" });
  for (const id of ["", ".", "..", "\ud800"]) {
    await assert.rejects(client.getExecution(id), InvalidField);
    await assert.rejects(client.withdraw(id), InvalidField);
  }
  assert.equal(apiPath("executions", "a/../b?c#d%2e é"), "/api/v1/executions/a%2F..%2Fb%3Fc%23d%252e%20%C3%A9");
});

test("an address that nothing can be reached at is refused at once", () => {
  const addresses = ["ftp://host", "host:8080", "http://", "http://[", "http://host?key=1", "https://me:secret@host/"];
  for (const baseURL of addresses) {
    assert.throws(
      () => new ApprovalClient({ baseURL }),
      (error) => error instanceof ConnectionFailed && !error.message.includes("secret"),
    );
  }
});

test("the environment says what the options do not", async (t) => {
  const plane = await Plane.start(t, [() => ({ json: { requests: [] } })]);
  const { HOLDSHORT_URL = "", HOLDSHORT_API_KEY = "" } = process.env;
  t.after(() => Object.assign(process.env, { HOLDSHORT_URL, HOLDSHORT_API_KEY }));
  Object.assign(process.env, { HOLDSHORT_URL: `${plane.url}/`, HOLDSHORT_API_KEY: "hsk_env" });
  await new ApprovalClient().pendingFeedback();
  assert.equal(plane.seen[0]?.headers.authorization, "Bearer hsk_env");
});

test("a key or header that cannot be sent is refused without being shown", async () => {
  const secret = "s3cret";
  for (const apiKey of [`${secret} x`, `${secret}\r\nx: y`, `${secret}é`, `${secret}\0`]) {
    assert.throws(() => new ApprovalClient({ apiKey }), hides(KeyRefused, secret));
  }
  for (const headers of [{ "x-proxy": `${secret}\nx` }, { [`x ${secret}`]: "y" }, { "x-proxy": `${secret}\u2028` }]) {
    assert.throws(() => new ApprovalClient({ headers }), hides(InvalidField, secret));
  }
  const idempotencyKey = `${secret}\n`;
  const calling = new ApprovalClient().executeAsync("node", "perform", {}, { idempotencyKey });
  await assert.rejects(calling, hides(InvalidField, secret));
});

test("a short-lived question that nobody could answer is refused, and no time is clamped", () => {
  for (const [id, message, seconds] of [
    ["", "?", 60],
    ["a b", "?", 60],
    ["a\n", "?", 60],
    ["x".repeat(129), "?", 60],
    ["a", "", 60],
    ["a", " \n", 60],
    ["a", "x".repeat(4001), 60],
    ["a", "?", 4.9],
    ["a", "?", 1800.5],
    ["a", "?", Number.NaN],
    ["a", "?", "60"],
  ]) {
    assert.throws(() => checkQuestion(id, message, seconds), InvalidField);
  }
  checkQuestion("A-z_0.9~:", "\u{1f600}".repeat(4000), 5);
  checkQuestion("a", "?", 1800);
});

test("choices fit their kind, differ, can be read and mean what they say", () => {
  const refused = [
    { kind: "number" },
    { kind: "text", options: ["a"] },
    { kind: "multiple_choice" },
    { options: [] },
    { options: Array.from({ length: 21 }, (_, n) => `${n}`) },
    { options: ["a", "a "] },
    { options: ["a", ""] },
    { options: ["a\n"] },
    { options: ["\u200b"] },
    { options: ["x".repeat(201)] },
    { options: "abc" as unknown as string[] },
    { yesLabel: "Ja" },
    { kind: "yes_no", yesLabel: " NO " },
    { kind: "yes_no", noLabel: "Ye\u017f" },
    { kind: "yes_no", yesLabel: "Same", noLabel: "Same" },
  ];
  for (const choices of refused) assert.throws(() => checkedChoices(choices), InvalidField, JSON.stringify(choices));
  assert.equal(checkedChoices({}).kind, "text");
  assert.equal(checkedChoices({ options: ["a", "b"] }).kind, "multiple_choice");
  assert.equal(checkedChoices({ kind: "yes_no", yesLabel: "Ja", noLabel: "Nein" }).yesLabel, "Ja");
});

function hides(kind: new () => Error, secret: string): (error: unknown) => boolean {
  return (error) => error instanceof kind && !`${error.stack}${JSON.stringify(error)}`.includes(secret);
}
