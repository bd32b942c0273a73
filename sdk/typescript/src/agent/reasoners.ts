// A function under its name.

import type { Run } from "./run.js";

/**
 * How a run whose process died is started again: "when_decided" waits without a process until its question is
 * answered, "at_start" starts again at once.
 */
export type Resume = "when_decided" | "at_start";

/** What is said of a reasoner. */
export interface ReasonerOptions {
  /** How long a run of it may work; waiting for people does not count. */
  readonly timeoutSeconds?: number | undefined;
  /** "when_decided" when absent. */
  readonly resume?: Resume | undefined;
}

/** A reasoner's function: gets its input, which is any JSON, and its run; returns JSON. */
export type ReasonerFunction<Input, Output> = (input: Input, run: Run) => Output | PromiseLike<Output>;

/** A registered function. */
export interface Reasoner {
  readonly name: string;
  readonly timeoutSeconds: number | undefined;
  readonly resume: Resume;
  readonly call: (input: unknown, run: Run) => unknown;
}

const A_NAME = /^[A-Za-z0-9._~:-]{1,128}$/;

/** The reasoners of one agent. */
export class Reasoners {
  readonly #known = new Map<string, Reasoner>();

  /** In the order in which they were registered. */
  get all(): Reasoner[] {
    return [...this.#known.values()];
  }

  /** Under a name; undefined where there is none. */
  named(name: string): Reasoner | undefined {
    return this.#known.get(name);
  }

  /**
   * Register a function.
   *
   * @throws {TypeError} the name or an option is none, or the name is taken.
   */
  add(name: string, options: ReasonerOptions, call: Reasoner["call"]): void {
    const { timeoutSeconds, resume = "when_decided" } = options;
    if (!A_NAME.test(name)) throw new TypeError("a reasoner's name is 1-128 of A-Z a-z 0-9 . _ ~ : -");
    if (this.#known.has(name)) throw new TypeError(`there is a reasoner ${JSON.stringify(name)} already`);
    if (typeof call !== "function") throw new TypeError(`reasoner ${name} needs a function`);
    if (timeoutSeconds !== undefined && !(timeoutSeconds > 0 && Number.isFinite(timeoutSeconds))) {
      throw new TypeError(`timeoutSeconds of ${name} must be a number above 0`);
    }
    if (resume !== "when_decided" && resume !== "at_start") {
      throw new TypeError(`resume of ${name} must be "when_decided" or "at_start"`);
    }
    this.#known.set(name, { name, timeoutSeconds, resume, call });
  }
}
