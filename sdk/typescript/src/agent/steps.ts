// Steps of one run: done once, stored before they are returned, and found again when the run is started again.

import type { Call, SendOptions } from "../core.js";
import { ExecutionFinished } from "../errors.js";
import { keepStep, listSteps } from "../routes.js";
import { endedByApproval, type Step, type StepPage } from "../runWire.js";
import { Book, placeOf } from "./book.js";
import type { Ticket } from "./branches.js";
import { Branches, sideBySide } from "./branches.js";
import type { Log } from "./log.js";
import { stepText } from "./plain.js";
import { nextRound, tellTurnsApart } from "./turns.js";

/** What steps need of their run. */
export interface StepsRun {
  readonly executionId: string;
  /** How many steps are kept of it; undefined when that is not known. */
  readonly storedSteps: number | undefined;
  readonly log: Log;
  /** Send a call of the run. */
  send<T>(call: Call<T>, options?: SendOptions): Promise<T>;
  /** Return once this process surely holds the run. */
  sure(): Promise<void>;
  /** Throw what ended the run. */
  check(): void;
  /** Await something of the run's code; rejects with what ends the run. */
  untilEnded<T>(promise: Promise<T>): Promise<T>;
}

/** The steps of one run. */
export class Steps {
  readonly #run: StepsRun;
  readonly #branches = new Branches();
  readonly #book = new Book();
  readonly #busy = new Set<Promise<unknown>>();
  #opened: Promise<void> | undefined;

  /** @param run that they belong to. */
  constructor(run: StepsRun) {
    this.#run = run;
    tellTurnsApart();
  }

  /** Steps whose functions work now: some go on after the run has ended. */
  get busy(): readonly Promise<unknown>[] {
    return [...this.#busy];
  }

  /**
   * Do a step once: its stored result, after doing it if there is none. It is counted here and now.
   *
   * @param branch path of the branch, "" outside one.
   * @param name of the step.
   * @param fn does it.
   */
  async perform<T>(branch: string, name: string, fn: () => T | PromiseLike<T>): Promise<T> {
    this.#run.check();
    const ticket = this.#branches.called(branch, name);
    let done = false;
    try {
      const result = await this.#found(ticket, fn);
      done = true;
      return result as T;
    } finally {
      this.#branches.left(ticket, done);
    }
  }

  /** Say in the log which stored steps the code of a run that succeeded did not ask for. */
  tellLeftOver(): void {
    const names = this.#book.leftOver;
    if (names.length === 0) return;
    const told = names.slice(0, 10).map((name) => JSON.stringify(name));
    this.#run.log.warn(
      `${this.#run.executionId} did not ask for ${names.length} of its stored steps: ${told.join(", ")}`,
    );
  }

  async #found(ticket: Ticket, fn: () => unknown): Promise<unknown> {
    await this.#run.sure();
    await this.#ready();
    const place = await placeOf(ticket);
    this.#run.check();
    const stored = this.#book.find(place, ticket.name);
    if (stored === undefined) return await this.#done(ticket, place, fn);
    // What was stored comes at once, in whatever order it was done: a call that could be taken for this one comes now.
    await nextRound();
    if (ticket.mixedUp) throw sideBySide(ticket);
    return stored.result;
  }

  async #done(ticket: Ticket, place: string, fn: () => unknown): Promise<unknown> {
    const work = (async () => await fn())();
    this.#busy.add(work);
    const over = (): boolean => this.#busy.delete(work);
    work.then(over, over);
    const result: unknown = JSON.parse(stepText(ticket.name, await this.#run.untilEnded(work)));
    return await this.#keep(ticket, place, result);
  }

  /** Store a result before anybody sees it; of two results the first stands. */
  async #keep(ticket: Ticket, place: string, result: unknown): Promise<unknown> {
    const { executionId } = this.#run;
    const { name } = ticket;
    const step = { name, occurrence: this.#book.number(place, name), previous: place, result };
    try {
      return (await this.#run.send(keepStep(executionId, step))).result;
    } catch (error) {
      if (!(error instanceof ExecutionFinished)) throw error;
      const { execution_status: status, status_reason: reason } = error.details;
      if (!endedByApproval(textOf(status), textOf(reason))) throw error;
      // A person said no, or nobody answered: the code may clean up, but nothing new is kept.
      this.#run.log.warn(`step ${JSON.stringify(name)} of ${executionId} was done but not kept: ${error.message}`);
      return result;
    }
  }

  /** Read what is stored: once, and only when there may be some. */
  async #ready(): Promise<void> {
    this.#opened ??= this.#open();
    try {
      await this.#opened;
    } catch (error) {
      this.#opened = undefined;
      throw error;
    }
  }

  async #open(): Promise<void> {
    if (this.#run.storedSteps === 0) return;
    const stored: Step[] = [];
    for (let after: number | null = 0; after !== null;) {
      const page: StepPage = await this.#run.send(listSteps(this.#run.executionId, after));
      stored.push(...page.steps);
      after = page.nextAfter;
    }
    this.#book.open(stored);
  }
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
