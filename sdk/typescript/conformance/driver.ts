// The TypeScript SDK behind a pipe: reads one JSON request a line, answers one a line, and serves an agent meanwhile.
//
// It is driven by the scenarios of sdk/conformance/scenarios.json, as the drivers of the other languages are.
// Environment: HOLDSHORT_URL, NODE, PORT, CALLBACK, and HOLDSHORT_API_KEY where the control plane wants a key. It ends
// with its input.

import { createInterface } from "node:readline";
import { Agent, type Callback } from "../src/agent.js";
import { serve } from "../src/node.js";
import { clientOps } from "./clientOps.js";
import { Performer } from "./performer.js";
import { type Args, type Op, told } from "./told.js";

const DRAIN_SECONDS = 1;
const CANCELLED = { kind: "Cancelled", is: [], code: "cancelled", status: null };

interface Asked {
  readonly id: number;
  readonly op: string;
  readonly args?: Args;
}

interface Doing {
  readonly abort: AbortController;
  readonly answered: Promise<void>;
}

/** Answers requests side by side, each under a signal that another request may abort. */
class Driver {
  readonly #ops: ReadonlyMap<string, Op>;
  readonly #doing = new Map<number, Doing>();

  constructor(ops: Readonly<Record<string, Op>>) {
    this.#ops = new Map(Object.entries({ ...ops, cancel: (args) => this.#cancel(args) } satisfies Record<string, Op>));
  }

  /** Begin what a line asks for. */
  take(line: string): void {
    const asked = JSON.parse(line) as Asked;
    const abort = new AbortController();
    const answered = this.#answer(asked, abort.signal).finally(() => this.#doing.delete(asked.id));
    this.#doing.set(asked.id, { abort, answered });
  }

  async #answer({ id, op, args = {} }: Asked, signal: AbortSignal): Promise<void> {
    try {
      const known = this.#ops.get(op);
      if (known === undefined) throw new TypeError(`no op ${op}`);
      say({ id, ok: (await known(args, signal)) ?? null });
    } catch (error) {
      say({ id, error: signal.aborted ? CANCELLED : told(error) });
    }
  }

  async #cancel(args: Args): Promise<void> {
    const doing = this.#doing.get(args["id"] as number);
    doing?.abort.abort();
    await doing?.answered;
  }
}

/** Write one line, whole. */
function say(message: object): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

function needed(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
}

async function main(): Promise<void> {
  const nodeId = needed("NODE");
  const port = Number(needed("PORT"));
  const callbackURL = `http://127.0.0.1:${port}`;
  const agent = new Agent({ nodeId, version: "1", callbackURL, callback: needed("CALLBACK") as Callback });
  const performer = new Performer(agent);
  const served = await serve(agent, { port, drainSeconds: DRAIN_SECONDS });
  const driver = new Driver({ ...clientOps(nodeId), ...performer.ops });
  // SIGTERM ends it too, though its input goes on.
  void served.stopped.then(() => process.exit(0));
  const lines = createInterface({ input: process.stdin });
  lines.on("line", (line) => driver.take(line));
  lines.on("close", () => void served.stop());
  if (await agent.whenRegistered()) say({ ready: true });
}

await main();
