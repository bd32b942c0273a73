import assert from "node:assert/strict";
import { test } from "node:test";

import { delayAfter, judge, Unreachable, type Reply } from "../../src/core.js";
import { ApprovalClient, ConnectionFailed, Unavailable } from "../../src/index.js";
import { allHold, vectors } from "../pure/vectors.js";
import { approval, Plane, problem } from "./plane.js";

interface Case {
  name: string;
  reply: { status: number; headers: Record<string, string> } | null;
  tries: number;
  left_seconds: number | null;
  jitter: number;
  expect: { then: "again" | "answer" | "fail"; seconds?: number };
}

const { cases } = vectors<{ cases: Case[] }>("retries");
const CALL = { method: "GET", path: "/api/v1/approvals" } as const;

allHold("retries", 52, cases.map((each) => [each.name, each] as const), (each) => {
  const reply: Reply | undefined = each.reply ? { ...each.reply, body: "" } : undefined;
  const left = each.left_seconds === null ? Infinity : 1000 * each.left_seconds;
  const judged = (): unknown => judge(CALL, reply ?? new Unreachable("refused"), each.tries, left, each.jitter);
  if (each.expect.then === "fail") {
    assert.throws(judged, ConnectionFailed);
  } else if (each.expect.then === "answer") {
    assert.equal(judged(), reply);
  } else {
    const expected = 1000 * (each.expect.seconds ?? Number.NaN);
    assert.ok(Math.abs(delayAfter(reply, each.tries, each.jitter) - expected) < 1e-6);
    assert.deepEqual(judged(), { delayMs: delayAfter(reply, each.tries, each.jitter) });
  }
});

test("a call goes on through refusals that pass, and through connections that are cut", async (t) => {
  const busy = { status: 503, headers: { "retry-after": "0" } };
  const plane = await Plane.start(t, [
    () => "cut",
    () => busy,
    () => ({ status: 429 }),
    () => ({ status: 502, body: "<html>" }),
    () => ({ status: 504 }),
    () => ({ json: approval("approved") }),
  ]);
  const found = await new ApprovalClient({ baseURL: plane.url }).getApproval("apr_1");
  assert.equal(found.status, "approved");
  assert.equal(new Set(plane.lines).size, 1);
});

test("the last answer is what the caller gets when the time is up", async (t) => {
  const plane = await Plane.start(t, [() => problem(503, "database_unavailable")]);
  const client = new ApprovalClient({ baseURL: plane.url, patienceMs: 0 });
  await assert.rejects(client.getApproval("apr_1"), (error) => {
    assert.ok(error instanceof Unavailable);
    return error.code === "database_unavailable";
  });
});

test("without any answer the error says why none came", async (t) => {
  const plane = await Plane.start(t, []);
  await plane.stop();
  const client = new ApprovalClient({ baseURL: plane.url, patienceMs: 100 });
  await assert.rejects(client.getApproval("apr_1"), (error) => {
    assert.ok(error instanceof ConnectionFailed);
    assert.match(error.message, /GET \/api\/v1\/approvals\/apr_1: .*ECONNREFUSED/);
    return true;
  });
});

test("a refusal that stays is not tried again", async (t) => {
  for (const status of [400, 401, 403, 404, 408, 409, 410, 413, 422, 500]) {
    const plane = await Plane.start(t, [() => problem(status, "not_yet_known")]);
    await assert.rejects(new ApprovalClient({ baseURL: plane.url }).getApproval("apr_1"), { code: "not_yet_known" });
    assert.equal(plane.seen.length, 1);
  }
});
