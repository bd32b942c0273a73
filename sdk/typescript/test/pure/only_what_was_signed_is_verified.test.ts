import assert from "node:assert/strict";
import type { IncomingHttpHeaders } from "node:http";
import { test } from "node:test";

import { type Scheme, signWebhook, standardHolds, verifyWebhook, type WebhookHeaders } from "../../src/webhooks.js";
import { allHold, vectors } from "./vectors.js";

interface Case {
  name: string;
  secrets: string[];
  now: number;
  headers: Record<string, string>;
  body_base64: string;
  outcome: string;
}

const SCHEMES: readonly Scheme[] = ["body", "timestamped", "standard"];
const SECRETS = ["plain secret text", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_no base64"];
// What takes the square of its length would take minutes; a busy machine takes a while.
const LONGEST_MS = 20_000;
const BODY = '{"decision":"approved"}';
const { cases } = vectors<{ cases: Case[] }>("signatures");

allHold("signatures", 56, cases.map((each) => [each.name, each] as const), async (each) => {
  const verifying = verifyWebhook(each.headers, Buffer.from(each.body_base64, "base64"), each.secrets, each);
  if (each.outcome === "valid") {
    await verifying;
    return;
  }
  const name = each.outcome === "stale_signature" ? "StaleSignature" : "InvalidSignature";
  await assert.rejects(verifying, { name, code: each.outcome });
});

test("what is signed here verifies here, and nothing else does", async () => {
  for (const scheme of SCHEMES) {
    for (const secret of SECRETS) {
      const headers = await signWebhook(secret, BODY, { scheme, now: 1000, webhookId: "msg_1" });
      const proven = await verifyWebhook(headers, BODY, ["another", secret], { now: 1300 });
      assert.deepEqual(proven, { scheme, webhookId: scheme === "standard" ? "msg_1" : null });
      for (const changed of [`${BODY} `, BODY.replace("approved", "rejected"), ""]) {
        await assert.rejects(verifyWebhook(headers, changed, [secret], { now: 1000 }), { code: "invalid_signature" });
      }
    }
  }
});

test("headers may come in every shape that runtimes have", async () => {
  const signed = await signWebhook("a secret", BODY, { webhookId: "msg_1" });
  const pairs = Object.entries(signed);
  const wrong = [...pairs, ["Webhook-Signature", "v1,AAAA"], ["x-hax-signature", "sha256=00"]] as [string, string][];
  const node: IncomingHttpHeaders = { ...signed, "webhook-signature": [signed["webhook-signature"] ?? ""], host: undefined };
  const shapes: WebhookHeaders[] = [signed, pairs, new Headers(signed), new Map(pairs), wrong, node];
  for (const headers of shapes) assert.equal((await verifyWebhook(headers, BODY, ["a secret"])).webhookId, "msg_1");
});

test("hostile headers are only invalid", async () => {
  const hostile = [
    "",
    "v1",
    "v1,",
    "\ud800",
    "\u00e9".repeat(99),
    `t=1,t=2,v1=${"0".repeat(64)}`,
    `t=${"9".repeat(99)},v1=x`,
    "=",
    ",,,",
    "\0",
    `v1,${"A".repeat(42)}B=`,
    `\u00a0v1,${"A".repeat(43)}=`,
  ];
  for (const name of ["X-Webhook-Signature", "webhook-signature", "X-Hax-Signature"]) {
    for (const value of hostile) {
      const headers = [["webhook-id", "m"], ["webhook-timestamp", "1"], [name, value], [name, value]] as const;
      const code = value === "" ? "missing_signature" : "invalid_signature";
      await assert.rejects(verifyWebhook(headers, "x", Array<string>(9).fill("secret"), { now: 1 }), { code });
    }
  }
});

test("a header of spaces and commas takes no longer than it is long", async () => {
  const long = 200_000;
  for (const value of [`x${" ".repeat(long)}x`, ",".repeat(long), "v1,".repeat(long), "t=".repeat(long)]) {
    const headers = [["webhook-id", "m"], ["webhook-timestamp", "1"], ["webhook-signature", value]] as const;
    const started = performance.now();
    await assert.rejects(verifyWebhook([...headers, ["x-webhook-signature", value]], "x", ["secret"], { now: 1 }));
    assert.ok(performance.now() - started < LONGEST_MS);
  }
});

test("only the first ten signatures and the first five secrets are tried", async () => {
  const good = await signWebhook("good", BODY, { scheme: "body" });
  const value = good["X-Webhook-Signature"] ?? "";
  const after = (others: number): [string, string][] => [
    ...Array.from({ length: others }, (): [string, string] => ["x-hax-signature", "0".repeat(64)]),
    ["x-hax-signature", value],
  ];
  await verifyWebhook(after(9), BODY, ["good"]);
  await assert.rejects(verifyWebhook(after(10), BODY, ["good"]), { code: "invalid_signature" });
  await verifyWebhook(good, BODY, ["1", "2", "3", "4", "good"]);
  await assert.rejects(verifyWebhook(good, BODY, ["1", "2", "3", "4", "5", "good"]), { code: "invalid_signature" });
});

test("under an empty secret nothing is signed and nothing holds", async () => {
  const headers = await signWebhook("secret", BODY, { webhookId: "m" });
  await assert.rejects(verifyWebhook(headers, BODY, [""]), { code: "not_configured" });
  assert.equal(await standardHolds(headers, BODY, ""), false);
  await assert.rejects(signWebhook("", BODY, { webhookId: "m" }), RangeError);
});

test("a callback's signature holds whatever its time, in the standard scheme alone", async () => {
  const standard = await signWebhook("secret", BODY, { now: 0, webhookId: "m" });
  assert.equal(await standardHolds(standard, BODY, "secret"), true);
  assert.equal(await standardHolds(standard, `${BODY} `, "secret"), false);
  assert.equal(await standardHolds(standard, BODY, "another"), false);
  assert.equal(await standardHolds(await signWebhook("secret", BODY, { scheme: "body" }), BODY, "secret"), false);
});

test("a signature that could be split in two ways is not made", async () => {
  for (const webhookId of ["", "a.b", "a b", "x".repeat(129)]) {
    await assert.rejects(signWebhook("secret", BODY, { webhookId }), RangeError);
  }
  for (const now of [1.5, -1, Number.NaN]) {
    await assert.rejects(signWebhook("secret", BODY, { scheme: "timestamped", now }), RangeError);
  }
});
