import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import * as sdk from "../../src/index.js";
import { newLock, seal } from "../../src/seals.js";
import { Plane, problem, type Act, type Said, type Seen } from "./plane.js";

const ASK = "POST /api/v1/human-feedback";
const ANSWER = "GET /api/v1/human-feedback/otp-1/answer?wait=55";
const ANSWER_NOW = "GET /api/v1/human-feedback/otp-1/answer?wait=0";
const END = "DELETE /api/v1/human-feedback/otp-1";

const registered: Act = (seen) => ({ status: 201, body: { unique_id: seen.json["unique_id"] } });
const pending: Act = () => ({ json: { outcome: "pending" } });
const ended: Act = () => ({ json: { unique_id: "otp-1", outcome: "answered" } });

/** Answers with what is sealed to the key of the question that was asked first. */
function answered(plane: () => Plane, answer: string): Act {
  return async () => {
    const { json } = plane().seen[0] as Seen;
    const sealed = await seal(String(json["public_key"]), String(json["unique_id"]), answer);
    return { json: { outcome: "answered", sealed } };
  };
}

async function started(t: TestContext, make: (answers: (text: string) => Act) => Act[]): Promise<Plane> {
  const plane: Plane = await Plane.start(t, make((text) => answered(() => plane, text)));
  return plane;
}

function ask(plane: Plane, options: sdk.HumanFeedbackOptions = {}): Promise<string> {
  return new sdk.ApprovalClient({ baseURL: plane.url }).humanFeedback("The code?", { uniqueId: "otp-1", ...options });
}

test("the answer is opened, and acknowledged so that it is let go of", async (t) => {
  const plane = await started(t, (answers) => [registered, answers("482913"), ended]);
  const options = { timeoutSeconds: 120, kind: "secret", executionId: "run-1" } as const;
  assert.equal(await ask(plane, options), "482913");
  assert.deepEqual(plane.lines, [ASK, ANSWER, END]);
  const { public_key: key, ...words } = plane.seen[0]?.json ?? {};
  assert.equal(Buffer.from(String(key), "base64").length, 32);
  assert.deepEqual(words, {
    unique_id: "otp-1",
    message_for_user: "The code?",
    kind: "secret",
    timeout_seconds: 120,
    execution_id: "run-1",
  });
});

test("every question has a key and, unless it is given one, an id of its own", async (t) => {
  const plane = await Plane.start(t, Array.from({ length: 4 }, () => () => problem(429, "too_many_questions")));
  const client = new sdk.ApprovalClient({ baseURL: plane.url, patienceMs: 0 });
  for (const _ of [1, 2]) await assert.rejects(client.humanFeedback("?"), sdk.Unavailable);
  for (const name of ["public_key", "unique_id"]) assert.notEqual(plane.seen[0]?.json[name], plane.seen[1]?.json[name]);
  assert.match(sdk.uniqueId("otp"), /^otp-[0-9a-f]{16}$/);
});

test("choices are sent with their labels", async (t) => {
  const plane = await started(t, (answers) => [registered, answers("yes"), ended]);
  assert.equal(await ask(plane, { kind: "yes_no", yesLabel: "Send it", noLabel: "Keep it" }), "yes");
  const { kind, yes_label, no_label } = plane.seen[0]?.json ?? {};
  assert.deepEqual([kind, yes_label, no_label], ["yes_no", "Send it", "Keep it"]);
});

test("a question that is still open is asked about again, not in a busy loop", async (t) => {
  const plane = await started(t, (answers) => [registered, pending, answers("ja\0nein"), ended]);
  const began = performance.now();
  assert.equal(await ask(plane), "ja\0nein");
  assert.ok(performance.now() - began > 900);
  assert.deepEqual(plane.lines, [ASK, ANSWER, ANSWER, END]);
});

test("a control plane that lost the question is asked again with the same key, once", async (t) => {
  const lost: Act = () => problem(404, "request_not_found");
  const plane = await started(t, (answers) => [registered, lost, registered, answers("482913"), ended]);
  assert.equal(await ask(plane), "482913");
  assert.deepEqual(plane.lines, [ASK, ANSWER, ASK, ANSWER, END]);
  assert.equal(plane.seen[0]?.body, plane.seen[2]?.body);
  const twice = await started(t, () => [registered, lost, registered, lost, () => problem(404, "request_not_found")]);
  await assert.rejects(ask(twice), sdk.NotFound);
  assert.deepEqual(twice.lines, [ASK, ANSWER, ASK, ANSWER, END]);
});

test("an answer that came while the reply to the asking was lost is this question's own", async (t) => {
  const used: Act = () => problem(409, "request_id_used");
  const plane = await started(t, (answers) => [() => "cut", used, answers("482913"), ended]);
  assert.equal(await ask(plane), "482913");
  assert.deepEqual(plane.lines, [ASK, ASK, ANSWER_NOW, END]);
});

test("an id that another question used up stays used, and nothing of that one is ended", async (t) => {
  const used: Act = () => problem(409, "request_id_used");
  const other = await seal((await newLock()).publicKey, "otp-1", "not yours");
  const whatIsThere: Said[] = [
    { json: { outcome: "answered", sealed: other } },
    { json: { outcome: "pending" } },
    problem(404, "request_not_found"),
    problem(410, "answer_taken"),
  ];
  for (const said of whatIsThere) {
    const plane = await Plane.start(t, [used, () => said]);
    await assert.rejects(ask(plane), sdk.RequestIdUsed);
    assert.deepEqual(plane.lines, [ASK, ANSWER_NOW]);
  }
});

test("an id that another call asks under is refused, and that one's question stays", async (t) => {
  const plane = await Plane.start(t, [() => problem(409, "duplicate_request")]);
  await assert.rejects(ask(plane), sdk.DuplicateRequest);
  assert.deepEqual(plane.lines, [ASK]);
});

test("no answer is an error of its own and never a yes", async (t) => {
  const ends = [
    ["request_expired", sdk.FeedbackExpired],
    ["request_cancelled", sdk.FeedbackCancelled],
    ["answer_taken", sdk.AnswerTaken],
  ] as const;
  for (const [code, kind] of ends) {
    const plane = await Plane.start(t, [registered, () => problem(410, code)]);
    await assert.rejects(ask(plane, { kind: "yes_no" }), kind);
    assert.deepEqual(plane.lines, [ASK, ANSWER]);
  }
});

test("what was not sealed to this question is no answer", async (t) => {
  const other = await seal((await newLock()).publicKey, "otp-1", "yes");
  const foreign = { outcome: "answered", sealed: other };
  const broken = [foreign, { outcome: "answered" }, { outcome: "approved", sealed: null }];
  for (const json of broken) {
    const plane = await Plane.start(t, [registered, () => ({ json }), ended]);
    await assert.rejects(ask(plane), sdk.UnreadableAnswer);
    assert.deepEqual(plane.lines, [ASK, ANSWER, END]);
  }
});

test("an answer is handed over although it could not be acknowledged, after 2 s at most", async (t) => {
  const quick = await started(t, (answers) => [registered, answers("482913"), () => problem(500, "internal_error")]);
  assert.equal(await ask(quick), "482913");
  const silent = await started(t, (answers) => [registered, answers("482913"), () => "hold"]);
  const began = performance.now();
  assert.equal(await ask(silent), "482913");
  assert.ok(performance.now() - began < 4000);
});
