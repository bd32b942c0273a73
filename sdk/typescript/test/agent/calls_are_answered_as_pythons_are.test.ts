import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { Agent } from "../../src/agent.js";
import { Plane } from "./plane.js";
import { gate, post, Said, scene } from "./support.js";

const MIB = 1024 * 1024;

test("a call of a reasoner runs it and is answered with its result", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("double", (input: { readonly n: number }, run) => ({ n: 2 * input.n, run: run.executionId }));
    agent.reasoner("nothing", (input) => input);
    agent.reasoner("fail", () => Promise.reject(new RangeError("too far")));
  });
  const answer = await post(`${url}/reasoners/double`, { n: 4 }, { "x-execution-id": "run-1" });
  assert.deepEqual(answer.body, { execution_id: "run-1", status: "succeeded", result: { n: 8, run: "run-1" } });
  assert.equal(answer.headers.get("content-type"), "application/json");
  assert.deepEqual((await post(`${url}/reasoners/nothing`, "")).body["result"], {});
  const failed = await post(`${url}/reasoners/fail`, {}, { "x-execution-id": "run-2" });
  assert.equal(failed.status, 500);
  assert.equal(failed.headers.get("content-type"), "application/problem+json");
  assert.deepEqual(failed.body, {
    type: "about:blank",
    title: "Internal Server Error",
    status: 500,
    detail: "RangeError: too far",
    error: "run_failed",
    message: "RangeError: too far",
    execution_status: "failed",
    execution_id: "run-2",
  });
  assert.equal(plane.desk.execution("run-2").status, "failed");
});

test("the same execution id joins the call that runs it", async (context) => {
  const held = gate();
  let began = 0;
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", async () => {
      began += 1;
      await held.opened;
      return began;
    });
    agent.reasoner("other", () => 0);
  });
  const named = { "x-execution-id": "run-1" };
  const calls = [post(`${url}/reasoners/work`, {}, named), post(`${url}/reasoners/work`, {}, named)];
  await plane.until(() => plane.desk.executions.get("run-1"));
  const other = await post(`${url}/reasoners/other`, {}, named);
  assert.deepEqual([other.status, other.body["error"]], [409, "execution_exists"]);
  held.open();
  for (const { body } of await Promise.all(calls)) assert.equal(body["result"], 1);
  const over = await post(`${url}/reasoners/work`, {}, named);
  assert.equal(over.body["status"], "succeeded");
  assert.equal(began, 1);
});

test("a call under the id of a dispatched run is refused", async (context) => {
  const held = gate();
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", () => held.opened);
  });
  await plane.dispatch(url, "work", "run-1");
  const answer = await post(`${url}/reasoners/work`, {}, { "x-execution-id": "run-1" });
  assert.deepEqual([answer.status, answer.body["error"]], [409, "execution_exists"]);
  held.open();
  await plane.ended("run-1");
});

test("what makes no sense is refused with the status and the code that Python's agent has for it", async (context) => {
  const { url } = await scene(context, (agent) => {
    agent.reasoner("work", () => 1);
  });
  const fence = { "x-holdshort-fence": "1" };
  const run = { "x-execution-id": "run-1" };
  const cases: readonly [string, RequestInit, number, string][] = [
    ["/nowhere", {}, 404, "not_found"],
    ["/reasoners/", { method: "POST" }, 404, "not_found"],
    ["/reasoners/nobody", { method: "POST" }, 404, "reasoner_not_found"],
    ["/reasoners/nobody", { method: "POST", headers: { ...fence, ...run } }, 404, "reasoner_not_found"],
    ["/reasoners/work", {}, 405, "method_not_allowed"],
    ["/webhooks/approval", { method: "DELETE" }, 405, "method_not_allowed"],
    ["/health", { method: "POST" }, 405, "method_not_allowed"],
    ["/reasoners/work", { method: "POST", body: "{" }, 400, "invalid_body"],
    ["/reasoners/work", { method: "POST", body: new Uint8Array([0x22, 0xff, 0x22]) }, 400, "invalid_body"],
    ["/webhooks/approval", { method: "POST", body: "{}" }, 400, "invalid_body"],
    ["/reasoners/work", { method: "POST", body: "1".repeat(MIB + 1) }, 413, "body_too_large"],
    [
      "/reasoners/work",
      { method: "POST", body: "1".repeat(8 * MIB + 1), headers: { ...fence, ...run } },
      413,
      "body_too_large",
    ],
    ["/reasoners/work", { method: "POST", headers: { "x-execution-id": "a b" } }, 422, "invalid_input"],
    ["/reasoners/work", { method: "POST", headers: fence }, 422, "invalid_input"],
    ["/reasoners/work", { method: "POST", headers: { ...run, "x-holdshort-fence": "one" } }, 422, "invalid_input"],
    [
      "/reasoners/work",
      { method: "POST", headers: { ...run, ...fence, "x-holdshort-steps": "1.5" } },
      422,
      "invalid_input",
    ],
    [
      "/reasoners/work",
      { method: "POST", headers: { ...run, ...fence, "x-holdshort-time-left": "inf" } },
      422,
      "invalid_input",
    ],
  ];
  for (const [path, init, status, error] of cases) {
    const answer = await fetch(url + path, init);
    const body = (await answer.json()) as { error: string };
    assert.deepEqual([answer.status, body.error], [status, error], path);
    assert.equal(answer.headers.get("content-type"), "application/problem+json");
    if (status === 405) assert.equal(answer.headers.get("allow"), path === "/health" ? "GET" : "POST");
  }
});

test("an input of up to 8 MiB is dispatched", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("measure", (input: string) => input.length);
  });
  assert.equal((await plane.dispatch(url, "measure", "run-1", { input: "x".repeat(7 * MIB) })).status, 202);
  assert.equal((await plane.ended("run-1")).reported["result"], 7 * MIB);
});

test("a body that never ends is answered, and its connection cut", async (context) => {
  const { url } = await scene(context, () => undefined);
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.write(`POST /webhooks/approval HTTP/1.1\r\nhost: x\r\ncontent-length: ${100 * MIB}\r\n\r\n`);
  socket.write(Buffer.alloc(2 * MIB, "x"));
  let said = "";
  socket.on("data", (part) => {
    said += part.toString();
  });
  socket.on("error", () => undefined);
  await new Promise((resolve) => socket.once("close", resolve));
  assert.match(said, /^HTTP\/1.1 413 /);
});

test("health says what is served and whether the control plane knows it", async (context) => {
  const { url } = await scene(
    context,
    (agent) => {
      agent.reasoner("work", { timeoutSeconds: 5 }, () => 1);
    },
    { version: "2" },
  );
  const answer = await fetch(`${url}/health`);
  assert.deepEqual(await answer.json(), {
    status: "ok",
    registered: true,
    node_id: "node-1",
    version: "2",
    reasoners: [{ name: "work", timeout_seconds: 5, resume: "when_decided" }],
  });
  const head = await fetch(`${url}/health`, { method: "HEAD" });
  assert.deepEqual([head.status, await head.text()], [200, ""]);
});

test("the handler works mounted below a path of any server, as a Request in and a Response out", async (context) => {
  const plane = await Plane.start(context);
  const agent = new Agent({
    nodeId: "node-1",
    controlPlaneURL: plane.url,
    callbackURL: "https://example.com/agents/one/",
    log: new Said(),
  });
  agent.reasoner("work", async () => (await agent.pause({ approvalRequestId: "q" })).decision);
  await agent.start();
  assert.ok(agent.registered);
  assert.equal(plane.sent("/nodes/register")[0]?.body["base_url"], "https://example.com/agents/one");
  // Some servers leave in the request where it is mounted, some do not.
  for (const path of ["/agents/one/health", "/health/"]) {
    assert.equal((await agent.handler(new Request(`https://example.com${path}`))).status, 200);
  }
  const headers = { "x-execution-id": "run-1", "x-holdshort-fence": "1" };
  const init = { method: "POST", headers, body: "{}" };
  const taken = await agent.handler(new Request("https://example.com/agents/one/reasoners/work", init));
  assert.equal(taken.status, 202);
  const approval = await plane.pending("run-1");
  assert.equal(approval.callbackUrl, "https://example.com/agents/one/webhooks/approval");
  plane.desk.decide(approval, "approved");
  await plane.ended("run-1");
  await agent.stop();
  assert.equal(plane.desk.nodes.size, 0);
  assert.equal((await agent.handler(new Request("https://example.com/reasoners/work", init))).status, 503);
});

test("a control plane that refuses is told on as what it is, and its refusal of our key as ours", async (context) => {
  const { plane, url } = await scene(context, (agent) => {
    agent.reasoner("work", () => 1);
  });
  const replies = [
    { status: 401, body: { error: "invalid_key", message: "no" } },
    { status: 409, body: { error: "execution_exists", message: "another node's", node_id: "other" } },
  ];
  plane.instead.push(({ path }) => (path === "/executions" ? replies.shift() : undefined));
  const ours = await post(`${url}/reasoners/work`, {});
  assert.deepEqual([ours.status, ours.body["error"]], [503, "invalid_key"]);
  const theirs = await post(`${url}/reasoners/work`, {});
  assert.deepEqual([theirs.status, theirs.body["error"], theirs.body["node_id"]], [409, "execution_exists", "other"]);
});
