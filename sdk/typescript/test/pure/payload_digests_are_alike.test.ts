import assert from "node:assert/strict";
import { test } from "node:test";

import { canonical } from "../../src/digests.js";
import { payloadDigest } from "../../src/webhooks.js";
import { allHold, vectors } from "./vectors.js";

interface Case {
  raw: string;
  canonical: string;
  sha256: string;
}

const { cases } = vectors<{ cases: Case[] }>("payload_digests");

allHold("payload_digests", 16, cases.map((each) => [each.raw, each] as const), async (each) => {
  assert.equal(canonical(each.raw), each.canonical);
  assert.equal(await payloadDigest(each.raw), each.sha256);
  assert.equal(await payloadDigest(new TextEncoder().encode(each.raw)), each.sha256);
});

test("names are in the order of their code points, where pairs stand after everything else", () => {
  const names = ["\u{1f600}", "\u{1f44d}", "\ufb01", "\uffff", "z", "za", "", "\u20ac", "\ud7ff"];
  const written = canonical(JSON.stringify(Object.fromEntries(names.map((name) => [name, 1]))));
  const sorted = ["", "z", "za", "\u20ac", "\ud7ff", "\ufb01", "\uffff", "\u{1f44d}", "\u{1f600}"];
  assert.deepEqual(Object.keys(JSON.parse(written) as object), sorted);
});

test("a name that objects treat otherwise counts like any other", () => {
  assert.equal(canonical('{ "b": 1, "__proto__": { "a": 2 } }'), '{"__proto__":{"a":2},"b":1}');
});

test("what is no strict JSON has no digest", async () => {
  for (const raw of ["", "{", '{"a":1,"a":1}', "1e999", '"\\ud800"', new Uint8Array([0x22, 0xff, 0x22])]) {
    await assert.rejects(payloadDigest(raw), { name: "UnreadableBody", code: "invalid_body" });
  }
});
