import assert from "node:assert/strict";
import { test } from "node:test";

import { kindsOf } from "../../src/errorBase.js";
import * as sdk from "../../src/index.js";
import { readReply } from "../../src/core.js";
import { asItCame } from "../../src/members.js";
import { allHold, vectors } from "../pure/vectors.js";
import { approval, Plane } from "./plane.js";

interface Case {
  name: string;
  status: number;
  headers: Record<string, string>;
  body: string;
  expect: {
    kind: string;
    is: string[];
    code: string;
    says: string | null;
    request_id: string | null;
    details: Record<string, unknown>;
  };
}

const { cases } = vectors<{ cases: Case[] }>("errors");
const CALL = { method: "GET", path: "/api/v1/approvals", read: asItCame } as const;

allHold("errors", 90, cases.map((each) => [each.name, each] as const), ({ status, headers, body, expect }) => {
  const error = thrownBy(() => readReply(CALL, { status, headers, body }));
  assert.deepEqual(kindsOf(error), [expect.kind, ...expect.is]);
  assert.equal(error.name, expect.kind);
  assert.equal(error.code, expect.code);
  assert.equal(error.status, status);
  assert.equal(error.requestId, expect.request_id);
  assert.deepEqual(error.details, expect.details);
  assert.ok(error.message.includes(expect.says ?? String(status)), error.message);
  assert.ok(error instanceof sdk[expect.kind as "Refused"]);
});

test("a class catches its leaves and nothing beside them", () => {
  const error = thrownBy(() => readReply(CALL, { status: 409, headers: {}, body: '{"error":"round_not_open"}' }));
  assert.ok(error instanceof sdk.RoundNotOpen && error instanceof sdk.Conflict && error instanceof Error);
  assert.ok(!(error instanceof sdk.AlreadyDecided) && !(error instanceof sdk.NotFound));
});

test("the end of a run is no error to go on after", () => {
  const end = thrownBy(() => readReply(CALL, { status: 409, headers: {}, body: '{"error":"stale_instance"}' }));
  assert.ok(end instanceof sdk.RunEnded && !(end instanceof sdk.HoldshortError));
  const again = end.again();
  assert.ok(again instanceof sdk.StaleInstance && again !== end);
  assert.deepEqual([again.message, again.code, again.status], [end.message, end.code, end.status]);
});

test("every exported error has a name, a code and a sentence of its own", () => {
  const kinds = Object.values(sdk).filter((value) => isErrorClass(value));
  assert.ok(kinds.length >= 40);
  for (const kind of kinds) {
    const error = new kind();
    assert.equal(error.name, kind.name);
    assert.match(error.code, /^[a-z_]+$/);
    if (kind !== sdk.HoldshortError) assert.ok(error.message.length > 20, kind.name);
    assert.ok(error.stack?.startsWith(kind.name));
  }
});

test("what is no answer of this route is an error, whatever its status says", () => {
  for (const body of ["", "<html>", "[1,2", "\ufeff{}"]) {
    const error = thrownBy(() => readReply(CALL, { status: 200, headers: { "x-request-id": "req_7" }, body }));
    assert.ok(error instanceof sdk.Refused);
    assert.deepEqual([error.code, error.status, error.requestId], ["unexpected_reply", 200, "req_7"]);
  }
});

test("an answer whose members are missing or of another kind is no answer", async (t) => {
  const whole = approval("approved");
  const broken = [
    { ...whole, round: "1" },
    { ...whole, status: undefined },
    { ...whole, approval_id: null },
    { ...whole, response: "approved" },
    { ...whole, history: {} },
    { ...whole, form: { kind: "multiple_choice", options: [1] } },
    { ...whole, form: { kind: "yes_no", editable: "yes" } },
    [whole],
    null,
  ];
  const plane = await Plane.start(t, [...broken.map((json) => () => ({ json })), () => ({ json: whole })]);
  const client = new sdk.ApprovalClient({ baseURL: plane.url });
  for (const _ of broken) await assert.rejects(client.getApproval("apr_1"), { code: "unexpected_reply" });
  assert.ok((await client.getApproval("apr_1")).final);
});

test("bytes that are no UTF-8 are no answer", async (t) => {
  const body = Buffer.from('{"requests":[]}\xff', "latin1");
  const plane = await Plane.start(t, [() => ({ status: 200, body }), () => ({ status: 404, body })]);
  const client = new sdk.ApprovalClient({ baseURL: plane.url });
  await assert.rejects(client.pendingFeedback(), { code: "unexpected_reply" });
  await assert.rejects(client.pendingFeedback(), { code: "not_found" });
});

test("code that asks for another step is told which one was expected", () => {
  const mismatch = sdk.StepMismatch.between("", "fetch", "send");
  assert.deepEqual(mismatch.details, { expected: "fetch", got: "send", place: "" });
  assert.match(mismatch.message, /^at the beginning this run did the step "fetch", and its code now asks for "send"/);
  assert.match(sdk.StepMismatch.between("fetch#1", "a", "b").message, /^behind fetch#1 /);
});

type ErrorClass = new () => sdk.ToldError;

function isErrorClass(value: unknown): value is ErrorClass {
  return typeof value === "function" && value.prototype instanceof sdk.ToldError;
}

function thrownBy(act: () => unknown): sdk.ToldError {
  try {
    act();
  } catch (error) {
    assert.ok(error instanceof sdk.ToldError);
    return error;
  }
  assert.fail("nothing was thrown");
}
