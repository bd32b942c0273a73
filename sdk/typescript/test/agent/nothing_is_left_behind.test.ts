import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { AccessLost } from "./errors.js";
import { Plane } from "./plane.js";
import { scene } from "./support.js";

/** Runs a script that has Agent and serve, and returns its exit code and what it wrote. */
async function script(context: TestContext, plane: Plane, text: string): Promise<[number | null, string]> {
  const from = (file: string): string => JSON.stringify(new URL(`../../src/${file}.js`, import.meta.url).href);
  const imports = `import { Agent } from ${from("agent")}; import { serve } from ${from("node")};`;
  const env = { ...process.env, HOLDSHORT_URL: plane.url };
  const child = spawn(process.execPath, ["--input-type=module", "-e", imports + text], { env });
  context.after(() => child.kill("SIGKILL"));
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (part: Buffer) => {
      said += part.toString();
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  return [code, said];
}

test("a script whose run has ended ends by itself", async (context) => {
  const plane = await Plane.start(context);
  const ran = script(
    context,
    plane,
    `
    const agent = new Agent({ nodeId: "node-1", callback: "pull" });
    const result = await agent.execution("run-1", null, () => agent.pause({ approvalRequestId: "q" }));
    console.log(result.decision);
  `,
  );
  await plane.decide(await plane.pending("run-1"), "approved");
  assert.deepEqual(await ran, [0, "approved\n"]);
});

test("an agent that was stopped keeps no process alive", async (context) => {
  const plane = await Plane.start(context);
  const [code] = await script(
    context,
    plane,
    `
    const agent = new Agent({ nodeId: "node-1" });
    const served = await serve(agent, { port: 0 });
    await agent.whenRegistered();
    await served.stop();
  `,
  );
  assert.equal(code, 0);
  assert.equal(plane.desk.nodes.size, 0);
});

test("an end of a run that nobody awaits is not that of a served process, and another error is", async (context) => {
  const plane = await Plane.start(context);
  const program = (thrown: string): string => `
    const agent = new Agent({ nodeId: "node-1" });
    agent.reasoner("work", async (_, run) => {
      const left = (async () => { try { await run.pause({ approvalRequestId: "q" }); } finally { ${thrown} } })();
      await run.pause({ approvalRequestId: "other" });
    });
    const served = await serve(agent, { port: 0 });
    await agent.whenRegistered();
    const url = "http://127.0.0.1:" + served.port;
    const headers = { "x-execution-id": "run-1", "x-holdshort-fence": "1" };
    await fetch(url + "/reasoners/work", { method: "POST", headers });
    while (agent.asked !== 2) agent.asked = (await (await fetch(process.env.HOLDSHORT_URL + "/count")).json()).asked;
    await fetch(url + "/_internal/executions/run-1/cancel", { method: "POST", headers });
    await new Promise((resolve) => setTimeout(resolve, 50));
    await served.stop();
    console.log("still there");
  `;
  plane.instead.push(({ path }) =>
    path === "/count" ? { status: 200, body: { asked: plane.desk.approvals.length } } : undefined,
  );
  const [code, said] = await script(context, plane, program(""));
  assert.equal(code, 0);
  assert.match(said, /still there/);
  plane.desk.approvals.length = 0;
  plane.desk.executions.clear();
  const [broken, why] = await script(context, plane, program("throw new Error('a bug')"));
  assert.equal(broken, 1);
  assert.match(why, /a bug/);
});

test("a thousand pauses leave no listener, no timer and no question behind", async (context) => {
  const warned: Error[] = [];
  const warning = (error: Error): void => void warned.push(error);
  process.on("warning", warning);
  context.after(() => process.removeListener("warning", warning));
  const { plane, agent } = await scene(context, () => undefined, { callback: "pull" });
  const many = Array.from({ length: 1000 }, (_, at) => at);
  const run = agent.execution("run-1", null, async () => {
    const results = await Promise.all(
      many.map((at) => agent.pause({ approvalRequestId: `q${at}`, timeoutMs: 2 ** 33 })),
    );
    return results.filter((result) => result.approved).length;
  });
  await plane.until(() => plane.desk.approvals.length === 1000);
  for (const approval of plane.desk.approvals) plane.desk.decide(approval, "approved");
  assert.equal(await run, 1000);
  assert.deepEqual(warned, []);
});

test("a key that is refused while a run waits gives the run up, and decides nothing", async (context) => {
  const { plane, agent } = await scene(context, () => undefined, { callback: "pull" });
  plane.instead.push(({ path }) =>
    path === "/approvals/wait" ? { status: 401, body: { error: "invalid_key", message: "ended" } } : undefined,
  );
  await assert.rejects(
    agent.execution("run-1", null, () => agent.pause({ approvalRequestId: "q" })),
    AccessLost,
  );
  assert.equal(plane.desk.approvals[0]?.status, "pending");
  assert.deepEqual(plane.sent("/run-1/status"), []);
});
