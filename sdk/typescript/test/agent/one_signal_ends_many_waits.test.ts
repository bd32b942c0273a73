import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";

import { linked, within } from "../../src/agent/signals.js";

test("a thousand waits by one signal are one listener, and end together with its reason", async () => {
  const caller = new AbortController();
  const never = new Promise<never>(() => undefined);
  const waits = Array.from({ length: 500 }, () => [
    within(never, Infinity, caller.signal),
    linked([caller.signal], (signal) => within(never, Infinity, signal)),
  ]).flat();
  assert.equal(getEventListeners(caller.signal, "abort").length, 1);
  caller.abort(new Error("enough"));
  const ends = await Promise.allSettled(waits);
  assert.equal(ends.filter((end) => end.status === "rejected" && end.reason === caller.signal.reason).length, 1000);
  assert.equal(getEventListeners(caller.signal, "abort").length, 0);
});
