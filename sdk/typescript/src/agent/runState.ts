// One run of an agent's code: under which fence it calls, what ends it, and what it has begun.

import type { Call, SendOptions } from "../core.js";
import { NoExecution, RunEnded, StaleInstance } from "../errors.js";
import { addNote } from "../routes.js";
import type { Asker } from "./asking.js";
import { Clock } from "./clock.js";
import { ExecutionTimedOut } from "./ends.js";
import type { Log } from "./log.js";
import { Notes } from "./notes.js";
import { FENCE_HEADER } from "./orders.js";
import { newId } from "./random.js";
import { Rounds } from "./rounds.js";
import type { Session } from "./session.js";
import { linked, Stop, type Stopping, within } from "./signals.js";
import { Steps } from "./steps.js";

/** What is known of a run when its code begins. */
export interface RunStart {
  readonly executionId: string;
  readonly reasoner: string;
  readonly input: unknown;
  /** Names the dispatch; undefined for a run that its program started. */
  readonly fence: number | undefined;
  /** How many steps are kept; undefined when that is not known. */
  readonly storedSteps: number | undefined;
  /** Returns once this process surely holds the run. */
  readonly confirmed?: (stopping: Stopping) => Promise<void>;
}

/** A run in progress. */
export class RunState implements Asker {
  readonly own = true;
  readonly executionId: string;
  readonly reasoner: string;
  readonly input: unknown;
  readonly storedSteps: number | undefined;
  readonly session: Session;
  readonly log: Log;
  readonly rounds = new Rounds();
  readonly steps: Steps;
  readonly notes: Notes;
  readonly clock: Clock;
  /** Aborted by the end of the run, for its code to see. */
  readonly ending = new AbortController();
  fence: number | undefined;
  end: RunEnded | undefined;
  /** What the control plane said last. */
  status = "running";
  readonly #confirmed: RunStart["confirmed"];
  /** Stopped when the run's code may do nothing more, at its end too. */
  readonly stopped = new Stop();
  readonly #abandoned = new AbortController();
  #waiting = 0;

  /**
   * @param session of the agent.
   * @param log of the agent.
   * @param start what is known of it.
   */
  constructor(session: Session, log: Log, start: RunStart) {
    this.session = session;
    this.log = log;
    this.executionId = start.executionId;
    this.reasoner = start.reasoner;
    this.input = start.input;
    this.fence = start.fence;
    this.storedSteps = start.storedSteps;
    this.#confirmed = start.confirmed;
    this.steps = new Steps(this);
    this.clock = new Clock(() => this.interrupt(new ExecutionTimedOut()));
    this.notes = new Notes(this.executionId, (message, tags, signal) => this.#keepNote(message, tags, signal), log);
  }

  /** Aborted when nobody waits any more for what the run leaves behind. */
  get abandoned(): AbortSignal {
    return this.#abandoned.signal;
  }

  /** True while its code waits for an answer. */
  get waits(): boolean {
    return this.#waiting > 0;
  }

  /** Send a call of this run's code, under its fence. Rejects with what ends the run. */
  async send<T>(call: Call<T>, options: SendOptions = {}): Promise<T> {
    this.check();
    try {
      return await linked([this.stopped, options.signal], (signal) => this.sendLast(call, { ...options, signal }));
    } catch (error) {
      if (error instanceof RunEnded) this.interrupt(error);
      throw this.end ?? error;
    }
  }

  /** Send a call under the run's fence, whether it has ended or not. */
  async sendLast<T>(call: Call<T>, options: SendOptions = {}): Promise<T> {
    for (;;) {
      const { fence } = this;
      const fenced =
        fence === undefined ? call : { ...call, headers: { ...call.headers, [FENCE_HEADER]: String(fence) } };
      try {
        return await this.session.sender.send(fenced, { patienceMs: null, ...options });
      } catch (error) {
        // Dispatched to this process again while the call was on its way: then it holds the run after all.
        if (!(error instanceof StaleInstance) || this.fence === fence) throw error;
      }
    }
  }

  /** End the run with this reason: its signal is aborted, and whatever it awaits here rejects. The first one stands. */
  interrupt(end: RunEnded): void {
    if (this.end !== undefined) return;
    this.end = end;
    this.clock.end();
    this.stopped.abort(end);
    this.ending.abort(end);
  }

  /** Its code is over: what goes on of it gets no further. */
  close(): void {
    this.clock.end();
    this.stopped.abort(new NoExecution("this run is over; await what it starts before it returns"));
  }

  /** Wait no longer for its code or its last words. */
  abandon(): void {
    this.#abandoned.abort();
    this.notes.stop();
  }

  /** Throw what ended this run. */
  check(): void {
    this.stopped.throwIfAborted();
  }

  /** Await something of the run's code; rejects with what ends the run. */
  untilEnded<T>(promise: Promise<T>): Promise<T> {
    return within(promise, Infinity, this.stopped) as Promise<T>;
  }

  /** Return once this process surely holds the run: an answer must not wake one that was taken over. */
  async sure(): Promise<void> {
    this.check();
    if (this.#confirmed !== undefined) await this.untilEnded(this.#confirmed(this.stopped));
    this.check();
  }

  /** Wait for an answer: the clock of the time limit stands still meanwhile. */
  async waiting<T>(work: () => Promise<T>): Promise<T> {
    this.check();
    this.clock.stand();
    this.#waiting += 1;
    try {
      return await this.untilEnded(work());
    } catch (error) {
      if (error instanceof RunEnded) this.interrupt(error);
      throw this.end ?? error;
    } finally {
      this.#waiting -= 1;
      this.clock.goOn();
    }
  }

  #keepNote(message: string, tags: readonly string[], signal: AbortSignal): Promise<unknown> {
    const noteId = newId("note");
    return this.sendLast(addNote(this.executionId, message, noteId, tags), { signal });
  }
}
