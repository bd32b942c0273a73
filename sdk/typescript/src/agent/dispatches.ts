// Runs that the control plane gives to this process: taken at once, run in the background, each under its fence.

import { ExecutionCancelled, HandedBack, RunEnded, StaleInstance } from "../errors.js";
import type { HeldRun } from "../routes.js";
import type { Answered } from "./answers.js";
import { noReasoner, notMeant, problem, stopping } from "./answers.js";
import { conclude } from "./conclude.js";
import { ExecutionTimedOut, stackOf } from "./ends.js";
import type { Cancellation, Order } from "./orders.js";
import type { Reasoner, Reasoners } from "./reasoners.js";
import { Run } from "./run.js";
import type { Runner } from "./runner.js";
import { RunState } from "./runState.js";
import { type Stopping, within } from "./signals.js";

const ENDING_MS = 1_000;
const REMEMBERED = 10_000;

/** What keeps this process registered. */
export interface Holder {
  /** Return once this process surely holds its runs. */
  confirmed(stopping: Stopping): Promise<void>;
  /** Give up a run whose code has ended. */
  handBack(run: HeldRun): void;
}

/** A run and its work, which never rejects. */
interface Going {
  readonly state: RunState;
  readonly over: Promise<void>;
}

/** The dispatched runs that are in progress here, by execution id. */
export class Dispatches {
  readonly #runner: Runner;
  readonly #reasoners: Reasoners;
  readonly #going = new Map<string, Going>();
  // A dispatch whose answer was lost comes again, perhaps when its run is over.
  readonly #taken = new Map<string, number>();
  /** What this process registers as. */
  instanceId = "";
  /** Keeps this process registered; undefined while it is not. */
  holder: Holder | undefined;

  /**
   * @param runner of the agent.
   * @param reasoners of the agent.
   */
  constructor(runner: Runner, reasoners: Reasoners) {
    this.#runner = runner;
    this.#reasoners = reasoners;
  }

  /** True while the run is in progress here. */
  has(executionId: string): boolean {
    return this.#going.has(executionId);
  }

  /**
   * Begin a run, or let the one in progress go on under the new fence; answered before it has ended.
   *
   * @param name of the reasoner.
   * @param input decoded JSON.
   * @param order which run it is.
   */
  take(name: string, input: unknown, order: Order): Answered {
    if (this.#runner.registry.draining) return stopping();
    if (order.instanceId !== undefined && order.instanceId !== this.instanceId) return notMeant();
    const accepted = { status: 202, body: { status: "processing", execution_id: order.executionId } };
    if (order.fence <= (this.#taken.get(order.executionId) ?? -1)) return accepted;
    const going = this.#going.get(order.executionId);
    if (going !== undefined && going.state.end === undefined) going.state.fence = order.fence;
    else {
      const reasoner = this.#reasoners.named(name);
      if (reasoner === undefined) return noReasoner(name);
      this.#begin(reasoner, input, order, going);
    }
    this.#remember(order);
    return accepted;
  }

  /**
   * End a run that is over for the control plane.
   *
   * @param executionId of the run.
   * @param told the fence of the dispatch that is over; a reason of "execution_timeout" ends it as its own time limit
   *   does, anything else as cancelled.
   */
  cancel(executionId: string, { fence, reason }: Cancellation): Answered {
    const state = this.#going.get(executionId)?.state;
    if (state === undefined) {
      return problem(404, "execution_not_found", `execution ${executionId} is not running here`);
    }
    if (state.fence !== undefined && fence < state.fence) {
      return problem(409, StaleInstance.code, "the run was dispatched again since", { fence: state.fence });
    }
    if (reason === ExecutionTimedOut.code) state.clock.runOut();
    else {
      const message = `execution ${executionId} was cancelled: ${reason}`;
      state.interrupt(new ExecutionCancelled(message, { details: { status_reason: reason } }));
    }
    return { status: 202, body: { status: "cancelling", execution_id: executionId } };
  }

  /** End what waits: the control plane took this process for gone, and gives it to whom it likes when decided. */
  letGo(): void {
    for (const { state } of this.#going.values()) {
      if (state.waits) state.interrupt(new HandedBack("this process counted as gone; the run goes on when decided"));
    }
  }

  /** Let what runs end, so many milliseconds; what has not ended then is stopped without an end. */
  async finish(ms: number): Promise<void> {
    await this.#untilEnded(ms);
    for (const { state } of this.#going.values()) state.interrupt(new HandedBack());
    await this.#untilEnded(ENDING_MS);
    for (const { state } of this.#going.values()) state.abandon();
    await this.#untilEnded(ENDING_MS);
  }

  async #untilEnded(ms: number): Promise<void> {
    const all = [...this.#going.values()].map((going) => going.over);
    if (all.length > 0) await within(Promise.all(all), ms);
  }

  #begin(reasoner: Reasoner, input: unknown, order: Order, before: Going | undefined): void {
    const { executionId, fence, storedSteps } = order;
    const confirmed = (stopping: Stopping) => this.holder?.confirmed(stopping) ?? Promise.resolve();
    const start = { executionId, reasoner: reasoner.name, input, fence, storedSteps, confirmed };
    const state = new RunState(this.#runner.session, this.#runner.log, start);
    const seconds = order.timeLeft ?? reasoner.timeoutSeconds;
    // The dispatch is answered before its code begins.
    const over = Promise.resolve().then(() => this.#work(state, reasoner, seconds, before));
    this.#going.set(executionId, { state, over });
    void over.then(() => {
      if (this.#going.get(executionId)?.state === state) this.#going.delete(executionId);
    });
  }

  async #work(
    state: RunState,
    reasoner: Reasoner,
    seconds: number | undefined,
    before: Going | undefined,
  ): Promise<void> {
    // Taken over, and given back to this very process: its code is let end before it begins anew.
    if (before !== undefined) await within(before.over, ENDING_MS);
    const run = new Run(this.#runner, state);
    try {
      await conclude(state, seconds, () => reasoner.call(state.input, run));
    } catch (error) {
      // Stopped while it told its end: if that was not heard it ends elsewhere, else there is nothing to take.
      const given = error instanceof HandedBack || state.abandoned.aborted;
      if (given && state.fence !== undefined)
        this.holder?.handBack({ executionId: state.executionId, fence: state.fence });
      this.#tell(state, reasoner, error);
    }
  }

  /** Nobody waits for a run: this is where it is said how it ended. */
  #tell(state: RunState, reasoner: Reasoner, error: unknown): void {
    const { log } = this.#runner;
    if (error instanceof StaleInstance) log.warn(`run ${state.executionId} ended here: ${error.message}`);
    else if (error instanceof RunEnded) log.info(`run ${state.executionId} ended: ${error.message}`);
    else if (!state.abandoned.aborted) {
      log.warn(`run ${state.executionId} of ${reasoner.name} failed: ${stackOf(error)}`);
    }
  }

  #remember({ executionId, fence }: Order): void {
    this.#taken.delete(executionId);
    this.#taken.set(executionId, fence);
    const most = Math.max(REMEMBERED, 2 * this.#going.size);
    for (const oldest of this.#taken.keys()) {
      if (this.#taken.size <= most) return;
      this.#taken.delete(oldest);
    }
  }
}
