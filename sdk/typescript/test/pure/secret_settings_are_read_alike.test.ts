import assert from "node:assert/strict";

import { parseSecrets } from "../../src/webhooks.js";
import { allHold, vectors } from "./vectors.js";

type Case = { value: string; secrets: [string, string][] } | { value: string; error: string };

const { cases } = vectors<{ cases: Case[] }>("secret_settings");

allHold("secret_settings", 9, cases.map((each) => [JSON.stringify(each.value), each] as const), (each) => {
  if ("error" in each) {
    assert.throws(() => parseSecrets(each.value), { name: "RangeError", message: each.error });
    return;
  }
  assert.deepEqual(parseSecrets(each.value).map(({ sender, secret }) => [sender, secret]), each.secrets);
});
