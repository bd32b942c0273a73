// A run as its code sees it.

import type { ApprovalResult } from "../result.js";
import { checkName } from "./branches.js";
import { said } from "./ends.js";
import type { AskOptions, FeedbackOptions, PauseOptions, ResumeOptions } from "./options.js";
import { askFrom, feedbackFrom, pauseFrom, resumeFrom } from "./people.js";
import type { Runner } from "./runner.js";
import type { RunState } from "./runState.js";
import { inScope, scopeOf } from "./scopes.js";

/** One run of a reasoner. Its methods are those of the agent, for this run wherever they are called from. */
export class Run {
  readonly #runner: Runner;
  readonly #state: RunState;

  /** @internal */
  constructor(runner: Runner, state: RunState) {
    this.#runner = runner;
    this.#state = state;
  }

  /** Names this run; give it to whoever decides, so that an answer can say which run it is for. */
  get executionId(): string {
    return this.#state.executionId;
  }

  /** The JSON that it was called with. */
  get input(): unknown {
    return this.#state.input;
  }

  /**
   * Aborted when the run must end: cancelled, out of time, taken over, or handed back. Its reason is a `RunEnded`, with
   * which every call of the run rejects from then on; pass the signal to whatever the code waits for.
   */
  get signal(): AbortSignal {
    return this.#state.ending.signal;
  }

  /** See `Agent.pause`. */
  async pause(options: PauseOptions = {}): Promise<ApprovalResult> {
    return await pauseFrom(this.#runner, scopeOf(this.#state), options);
  }

  /** See `Agent.ask`. */
  async ask(question: string, options: AskOptions = {}): Promise<ApprovalResult> {
    return await askFrom(this.#runner, scopeOf(this.#state), question, options);
  }

  /** See `Agent.waitForResume`. */
  async waitForResume(approvalRequestId: string, options: ResumeOptions = {}): Promise<ApprovalResult> {
    return await resumeFrom(this.#runner, scopeOf(this.#state), approvalRequestId, options);
  }

  /** See `Agent.humanFeedback`. */
  async humanFeedback(message: string, options: FeedbackOptions): Promise<string> {
    return await feedbackFrom(this.#runner, scopeOf(this.#state), message, options);
  }

  /** See `Agent.step`. */
  async step<T>(name: string, fn: () => T | PromiseLike<T>): Promise<T> {
    checkName("a step's name", name);
    const scope = scopeOf(this.#state);
    if (scope.inStep) return await fn();
    return await this.#state.steps.perform(scope.branch, name, () => inScope({ ...scope, inStep: true }, fn));
  }

  /** See `Agent.branch`. */
  async branch<T>(name: string, fn: () => T | PromiseLike<T>): Promise<T> {
    checkName("a branch's name", name);
    const scope = scopeOf(this.#state);
    const branch = scope.branch === "" ? name : `${scope.branch}/${name}`;
    return await inScope({ ...scope, branch }, fn);
  }

  /** See `Agent.note`. */
  note(message: string, tags: readonly string[] = []): void {
    try {
      this.#state.notes.add(message, [...tags]);
    } catch (error) {
      // The run matters more than what is noted of it.
      this.#runner.log.warn(`a note of ${this.executionId} was dropped: ${said(error)}`);
    }
  }
}
