/**
 * Does something until it is told to abort it, and says what is left of it then. It ends by itself, or never.
 *
 * Arguments: the control plane's address, and what to do; anything on the standard input says to abort.
 */

import { ApprovalClient } from "../../src/index.js";

const [, , baseURL = "", what = ""] = process.argv;
const controller = new AbortController();
const { signal } = controller;
/** What a program with standard input and output holds itself. */
const OWN = /^(?:PipeWrap|TTYWrap|CloseReq)$/;
let replies = 0;

const client = new ApprovalClient({
  baseURL,
  patienceMs: null,
  fetch: async (input, init) => {
    const response = await fetch(input, init);
    replies += 1;
    return response;
  },
});

const acts: Record<string, () => Promise<unknown>> = {
  wait: () => client.waitForApproval("run-1", { signal }),
  "long wait": () => client.waitForApproval("run-1", { signal, timeoutMs: 3e9 }),
  "wait in pause": () => client.waitForApproval("run-1", { signal }),
  "get in pause": () => client.getApproval("apr_1", { signal }),
  question: () => client.humanFeedback("?", { uniqueId: "otp-1", signal }),
  execute: () => client.execute("node", "perform", {}, { signal }),
};
/** How many replies must have come before the pause that is to be aborted. */
const pauses: Record<string, number> = { "wait in pause": 2, "get in pause": 1 };

const told = new Promise((resolve) => process.stdin.once("data", resolve));
const acting = acts[what]?.().catch((error: Error) => error.message);
await told;
// What a reply leads to takes some turns of the event loop.
for (let turns = 0; turns < 50 || replies < (pauses[what] ?? 0); turns += 1) await turn();
const began = performance.now();
controller.abort(new Error("the caller has gone"));
const reason = await acting;
const ms = performance.now() - began;
await turn();
console.log(JSON.stringify({ reason, ms, left: process.getActiveResourcesInfo().filter((one) => !OWN.test(one)) }));
process.stdin.destroy();

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
