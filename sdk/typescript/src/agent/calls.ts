// Calls of an agent's reasoners: one run an execution id, joined by it, answered without any I/O of HTTP.

import { HandedBack } from "../errors.js";
import type { Answered } from "./answers.js";
import { noReasoner, problem, stopping } from "./answers.js";
import { conclude } from "./conclude.js";
import { notStarted, notSucceeded, succeeded } from "./endings.js";
import type { Reasoner, Reasoners } from "./reasoners.js";
import { Run } from "./run.js";
import type { Runner } from "./runner.js";
import type { RunState } from "./runState.js";
import { within } from "./signals.js";

const ENDING_MS = 1_000;

/** One call in progress. */
interface Going {
  readonly name: string;
  readonly answered: Promise<Answered>;
  /** Undefined until the control plane knows the run. */
  state: RunState | undefined;
}

/** The runs in progress that were called directly. */
export class Calls {
  readonly #runner: Runner;
  readonly #reasoners: Reasoners;
  readonly #named = new Map<string, Going>();
  readonly #going = new Set<Going>();
  #starting = new AbortController();

  /**
   * @param runner of the agent.
   * @param reasoners of the agent.
   */
  constructor(runner: Runner, reasoners: Reasoners) {
    this.#runner = runner;
    this.#reasoners = reasoners;
  }

  /**
   * Run a reasoner to its end. A caller that goes away does not end the run.
   *
   * @param name of the reasoner.
   * @param input decoded JSON.
   * @param executionId continues this execution, or joins the call that runs it.
   */
  async call(name: string, input: unknown, executionId: string | undefined): Promise<Answered> {
    if (this.#runner.registry.draining) return stopping();
    const reasoner = this.#reasoners.named(name);
    if (reasoner === undefined) return noReasoner(name);
    const running = executionId === undefined ? undefined : this.#named.get(executionId);
    if (running === undefined) return await this.#begin(reasoner, input, executionId).answered;
    if (running.name === name) return await running.answered;
    return problem(409, "execution_exists", `execution ${executionId} is running ${JSON.stringify(running.name)}`);
  }

  /** Let what runs end, so many milliseconds; what has not ended then is stopped without an end. */
  async finish(ms: number): Promise<void> {
    await this.#untilEnded(ms);
    this.#starting.abort(new HandedBack());
    this.#starting = new AbortController();
    for (const { state } of this.#going) state?.interrupt(new HandedBack());
    await this.#untilEnded(ENDING_MS);
    for (const { state } of this.#going) state?.abandon();
    await this.#untilEnded(ENDING_MS);
  }

  async #untilEnded(ms: number): Promise<void> {
    const all = [...this.#going].map((going) => going.answered);
    if (all.length > 0) await within(Promise.allSettled(all), ms);
  }

  #begin(reasoner: Reasoner, input: unknown, executionId: string | undefined): Going {
    const left = (): void => {
      this.#going.delete(going);
      if (executionId !== undefined) this.#named.delete(executionId);
    };
    const answered = Promise.resolve()
      .then(() => this.#run(going, reasoner, input, executionId))
      .finally(left);
    const going: Going = { name: reasoner.name, answered, state: undefined };
    this.#going.add(going);
    if (executionId !== undefined) this.#named.set(executionId, going);
    return going;
  }

  async #run(going: Going, reasoner: Reasoner, input: unknown, executionId: string | undefined): Promise<Answered> {
    let state: RunState;
    try {
      state = await this.#runner.begun(executionId, input, reasoner.name, this.#starting.signal);
    } catch (error) {
      return notStarted(error);
    }
    going.state = state;
    if (this.#runner.registry.draining) state.interrupt(new HandedBack());
    const run = new Run(this.#runner, state);
    try {
      const result = await conclude(state, reasoner.timeoutSeconds, () => reasoner.call(input, run));
      return succeeded(state.executionId, state.status, result);
    } catch (error) {
      return notSucceeded(state, error);
    }
  }
}
