import assert from "node:assert/strict";
import { test } from "node:test";
import { receive } from "../../src/agent/callbacks.js";
import { Registry } from "../../src/agent/pauses.js";
import { toldResult } from "../../conformance/told.js";
import type { ApprovalResult } from "../../src/index.js";
import { HandedBack } from "../../src/errors.js";
import { allHold, vectors } from "../pure/vectors.js";
import { signWebhook } from "../../src/webhooks.js";

interface Case {
  readonly name: string;
  readonly secret: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body_base64: string;
  readonly expect: { status: number; resolved?: boolean; error?: string; result?: unknown };
}

interface Callbacks {
  readonly waiting: { execution_id: string; approval_request_id: string; round: number };
  readonly cases: readonly Case[];
}

const { waiting, cases } = vectors<Callbacks>("callbacks");
const KEY = {
  executionId: waiting.execution_id,
  approvalRequestId: waiting.approval_request_id,
  round: waiting.round,
};

allHold(
  "callbacks",
  49,
  cases.map((each) => [each.name, each]),
  async ({ secret, headers, body_base64: body, expect }) => {
    const registry = new Registry(() => secret);
    const pause = registry.register(KEY);
    const answered = await receive(registry, new Headers(headers), Buffer.from(body, "base64"));
    const said = answered.body as Record<string, unknown>;
    assert.equal(answered.status, expect.status);
    assert.equal(said["resolved"], expect.resolved);
    assert.equal(said["error"], expect.error);
    if (expect.result === undefined) return assert.equal(pause.outcome, undefined);
    assert.ok(pause.outcome !== undefined && !(pause.outcome instanceof HandedBack));
    assert.deepEqual(toldResult(pause.outcome), expect.result);
  },
);

const SECRET = "a-secret-of-this-test";
const DECIDED = {
  execution_id: KEY.executionId,
  approval_request_id: KEY.approvalRequestId,
  round: KEY.round,
  approval_id: "apr_1",
  decision: "approved",
};

async function told(registry: Registry, body: object): Promise<unknown> {
  const bytes = new TextEncoder().encode(JSON.stringify(body));
  const signed = await signWebhook(SECRET, bytes, { scheme: "standard", now: 1, webhookId: "msg_1" });
  return (await receive(registry, new Headers(signed), bytes)).body;
}

test("a callback that comes again after its pause has ended is resolved, and changes nothing", async () => {
  const registry = new Registry(() => SECRET);
  const pause = registry.register(KEY);
  assert.deepEqual(await told(registry, DECIDED), { resolved: true });
  registry.release(KEY, pause);
  assert.deepEqual(await told(registry, { ...DECIDED, decision: "rejected" }), { resolved: true });
  assert.equal((pause.outcome as ApprovalResult).decision, "approved");
});

test("of two answers the first wakes the pause", async () => {
  const registry = new Registry(() => SECRET);
  const pause = registry.register(KEY);
  await told(registry, { ...DECIDED, decision: "rejected" });
  await told(registry, DECIDED);
  assert.equal((pause.outcome as ApprovalResult).decision, "rejected");
});

test("a pause that ended without an answer is not remembered", async () => {
  const registry = new Registry(() => SECRET);
  registry.release(KEY, registry.register(KEY));
  assert.deepEqual(await told(registry, DECIDED), { resolved: false });
});

test("a wait that was handed back stays so, whatever is told afterwards", async () => {
  const registry = new Registry(() => SECRET);
  const pause = registry.register(KEY);
  registry.handBack();
  await told(registry, DECIDED);
  assert.ok(pause.outcome instanceof HandedBack);
});
