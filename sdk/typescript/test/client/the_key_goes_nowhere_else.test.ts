import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { inspect } from "node:util";

import { ApprovalClient, Refused } from "../../src/index.js";
import { isHere } from "../../src/origin.js";
import { Plane, problem } from "./plane.js";

const KEY = "hsk_0123456789abcdefghij";

/** What is said on the error output while a test runs. */
function heard(t: TestContext): string[] {
  const said: string[] = [];
  for (const name of ["warn", "error", "log", "info"] as const) {
    t.mock.method(console, name, (...words: unknown[]) => void said.push(words.join(" ")));
  }
  return said;
}

async function failure(acting: Promise<unknown>): Promise<Error> {
  const outcome = await acting.then(() => undefined, (error: unknown) => error);
  assert.ok(outcome instanceof Error);
  return outcome;
}

test("a redirect is not followed, wherever it points", async (t) => {
  const elsewhere = await Plane.start(t, []);
  for (const status of [301, 302, 303, 307, 308]) {
    const plane = await Plane.start(t, [
      () => ({ status, headers: { location: `${elsewhere.url}/api/v1/approvals/apr_1` } }),
      () => ({ status, headers: { location: "/api/v1/elsewhere" } }),
    ]);
    const client = new ApprovalClient({ baseURL: plane.url, apiKey: KEY });
    for (const acting of [client.getApproval("apr_1"), client.withdraw("apr_1")]) {
      const error = await failure(acting);
      assert.ok(error instanceof Refused && error.status === status);
      assert.match(error.message, /not followed: the key goes nowhere else/);
    }
    assert.equal(plane.seen.length, 2);
  }
  assert.equal(elsewhere.seen.length, 0);
});

test("no error, log or view of the client shows it", async (t) => {
  const said = heard(t);
  const plane = await Plane.start(t, [
    () => problem(401, "invalid_key"),
    () => problem(500, "internal_error"),
    () => ({ json: "no approval" }),
  ]);
  const client = new ApprovalClient({ baseURL: plane.url, apiKey: KEY, headers: { "x-proxy-secret": `of-${KEY}` } });
  const errors = [await failure(client.getApproval("a")), await failure(client.getApproval("b"))];
  errors.push(await failure(client.getApproval("c")));
  assert.equal(plane.seen[0]?.headers["x-proxy-secret"], `of-${KEY}`);
  await plane.stop();
  errors.push(await failure(client.getApproval("d", { patienceMs: 0 })));
  const shown = inspect([errors, client, said], { depth: 20, showHidden: true, getters: true });
  assert.ok(!`${shown}${JSON.stringify([errors, client])}`.includes(KEY));
});

test("what a fetch of the caller's says of its headers is not passed on", async (t) => {
  const said = heard(t);
  const client = new ApprovalClient({
    baseURL: "http://127.0.0.1:9",
    apiKey: KEY,
    patienceMs: 3000,
    fetch: (_, init) => Promise.reject(new TypeError(`cannot send ${JSON.stringify(init?.headers)}`)),
  });
  const error = await failure(client.getApproval("apr_1"));
  assert.match(error.message, /cannot send .*\.\.\./);
  assert.ok(!`${inspect(error)}${said.join()}`.includes(KEY));
});

test("who sends it unencrypted to another machine is told so, once for each", (t) => {
  const said = heard(t);
  const make = (baseURL: string, apiKey?: string) => new ApprovalClient({ baseURL, apiKey });
  const here = ["http://127.0.0.1:1", "http://[::1]:1", "http://localhost", "http://x.localhost"];
  for (const url of ["https://a.example", ...here]) make(url, KEY);
  make("http://a.example");
  assert.deepEqual(said, []);
  make("http://a.example", KEY);
  make("http://a.example/path", KEY);
  make("http://b.example", KEY);
  assert.deepEqual(said.map((line) => /sent to ([a-z.]+) unencrypted/.exec(line)?.[1]), ["a.example", "b.example"]);
  assert.ok(!said.join().includes(KEY));
});

test("only this machine is here", () => {
  assert.ok(["http://127.9.8.7", "http://127.1", "http://LOCALHOST:1"].every(isHere));
  assert.ok(!["http://127.0.0.1.example", "http://localhost.example", "http://0.0.0.0", "no address"].some(isHere));
});
