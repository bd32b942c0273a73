// The one reasoner of a driver's agent, which performs what its input says.

import { type Agent, type AskOptions, type FeedbackOptions, HoldshortError, type PauseOptions } from "../src/agent.js";
import { type Args, FEEDBACK, formOf, milliseconds, named, type Op, QUESTION, text, told, toldResult } from "./told.js";

type Script = readonly Args[];

const ASK = {
  ...FEEDBACK,
  schema: "schema",
  approval_request_id: "approvalRequestId",
  expires_in_hours: "expiresInHours",
  description: "description",
  on_expiry: "onExpiry",
} as const;

/** Registers `perform`, and remembers which steps were done in this process. */
export class Performer {
  readonly ops: Readonly<Record<string, Op>>;
  readonly #agent: Agent;
  readonly #journal: string[] = [];
  readonly #failed = new Set<string>();
  readonly #does = new Map<string, (args: never) => Promise<unknown>>([
    ["pause", (args: Args) => this.#pause(args)],
    ["step", (args: Args) => this.#step(args)],
    ["fail_once_step", (args: Args) => this.#failOnceStep(args)],
    ["ask", (args: Args) => this.#ask(args)],
    ["human_feedback", (args: Args) => this.#humanFeedback(args)],
    ["note", async (args: Args) => this.#agent.note(text(args, "message"))],
    ["together", (script: Script) => this.#together(script)],
    ["fail", (args: Args) => this.#fail(args)],
  ]);

  /** @param agent of the driver. */
  constructor(agent: Agent) {
    this.#agent = agent;
    agent.reasoner("perform", (input: { readonly script: Script }) => this.#perform(input.script));
    this.ops = {
      journal: async () => [...this.#journal],
      wait_for_resume: (args, signal) => this.#waitForResume(args, signal),
    };
  }

  async #perform(script: Script): Promise<unknown[]> {
    const results: unknown[] = [];
    for (const op of script) results.push((await this.#do(op)) ?? null);
    return results;
  }

  async #do(op: Args): Promise<unknown> {
    const { catch: caught = false, ...rest } = op;
    const [[name, args] = ["", undefined]] = Object.entries(rest);
    try {
      const does = this.#does.get(name);
      if (does === undefined) throw new TypeError(`no op ${name}`);
      return await does(args as never);
    } catch (error) {
      if (!caught || !(error instanceof HoldshortError)) throw error;
      const { kind, is, code } = told(error);
      return { error: { kind, is, code } };
    }
  }

  async #pause(args: Args): Promise<unknown> {
    const options = {
      ...named(args, QUESTION),
      form: formOf(args["form"]),
      timeoutMs: milliseconds(args, "timeout_seconds"),
    };
    return toldResult(await this.#agent.pause(options as PauseOptions));
  }

  #step(args: Args): Promise<unknown> {
    const done = () => this.#agent.step(text(args, "name"), () => this.#done(args));
    return "branch" in args ? this.#agent.branch(text(args, "branch"), done) : done();
  }

  #done(args: Args): unknown {
    this.#journal.push(text(args, "name"));
    return args["result"];
  }

  async #failOnceStep(args: Args): Promise<unknown> {
    const name = text(args, "name");
    const failing = new Error("the first time");
    const once = (): unknown => {
      if (this.#failed.has(name)) return this.#done(args);
      this.#failed.add(name);
      throw failing;
    };
    try {
      return await this.#agent.step(name, once);
    } catch (error) {
      if (error !== failing) throw error;
      return { error: "Error" };
    }
  }

  async #ask(args: Args): Promise<unknown> {
    const { timeoutSeconds: _, ...options } = named(args, ASK);
    const timeoutMs = milliseconds(args, "timeout_seconds");
    return toldResult(await this.#agent.ask(text(args, "question"), { ...options, timeoutMs } as AskOptions));
  }

  #humanFeedback(args: Args): Promise<string> {
    return this.#agent.humanFeedback(text(args, "message"), named(args, FEEDBACK) as unknown as FeedbackOptions);
  }

  #together(script: Script): Promise<unknown[]> {
    return Promise.all(script.map((op, index) => this.#agent.branch(String(index), () => this.#do(op))));
  }

  async #fail(args: Args): Promise<never> {
    throw new Error(text(args, "message"));
  }

  async #waitForResume(args: Args, signal: AbortSignal): Promise<unknown> {
    const options = {
      ...named(args, { execution_id: "executionId" }),
      timeoutMs: milliseconds(args, "timeout_seconds"),
    };
    return toldResult(await this.#agent.waitForResume(text(args, "approval_request_id"), { ...options, signal }));
  }
}
