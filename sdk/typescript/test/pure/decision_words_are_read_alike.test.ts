import assert from "node:assert/strict";
import { test } from "node:test";

import { decisionWord } from "../../src/webhooks.js";
import { allHold, vectors } from "./vectors.js";

const { accepted, refused } = vectors<{ accepted: Record<string, string>; refused: unknown[] }>("decisions");
const cases = [
  ...Object.entries(accepted).map(([word, means]) => ({ word: word as unknown, means })),
  ...refused.map((word) => ({ word, means: undefined })),
];

test("no word was lost", () => {
  assert.deepEqual([Object.keys(accepted).length, refused.length], [44, 26]);
});

allHold("decisions", 70, cases.map((each) => [JSON.stringify(each.word), each] as const), ({ word, means }) => {
  if (means === undefined) {
    assert.throws(() => decisionWord(word), { name: "UnreadableBody", code: "invalid_decision" });
    return;
  }
  assert.equal(decisionWord(word), means);
});

test("a word that every object knows is no decision", () => {
  for (const word of ["constructor", "__proto__", "toString", "approved\0", undefined, Symbol("approved")]) {
    assert.throws(() => decisionWord(word), { code: "invalid_decision" });
  }
});
