// Agent: what a user's program holds. It pauses, waits, notes, and serves its reasoners.

import { NoExecution } from "../errors.js";
import { setting } from "../origin.js";
import type { ApprovalResult } from "../result.js";
import type { Fetch } from "../transport.js";
import { conclude } from "./conclude.js";
import { Handler } from "./handler.js";
import { Lifetime } from "./lifetime.js";
import type { Log } from "./log.js";
import type { AskOptions, FeedbackOptions, PauseOptions, ResumeOptions } from "./options.js";
import { askFrom, feedbackFrom, pauseFrom, resumeFrom } from "./people.js";
import { type ReasonerFunction, type ReasonerOptions, Reasoners } from "./reasoners.js";
import { Run } from "./run.js";
import { type Callback, Runner } from "./runner.js";
import { type Scope, scopeHere } from "./scopes.js";

const DRAIN_S = 8;

/** What an agent is. */
export interface AgentOptions {
  /** The agent's name, 1-128 of `A-Z a-z 0-9 . _ ~ : -`; its runs belong to it. */
  readonly nodeId: string;
  /** Of the agent; shown where nodes are listed. */
  readonly version?: string | undefined;
  /** HOLDSHORT_URL, or http://127.0.0.1:8080, when absent. */
  readonly controlPlaneURL?: string | undefined;
  /** HOLDSHORT_API_KEY when absent. */
  readonly apiKey?: string | undefined;
  /**
   * Base URL where the control plane reaches this agent, with the path that it is mounted at; HOLDSHORT_CALLBACK_URL
   * when absent, or the loopback address that `serve` listens on, if the control plane is on this machine.
   */
  readonly callbackURL?: string | undefined;
  /** "auto" when absent: by callback and by one held call, whichever is first. Without an address it only pulls. */
  readonly callback?: Callback | undefined;
  /** How many runs the control plane gives to the node at a time; its own limit when absent. */
  readonly maxConcurrent?: number | undefined;
  /** Sends instead of the global `fetch`. */
  readonly fetch?: Fetch | undefined;
  /** Where the agent says what its code is not told; standard error when absent. */
  readonly log?: Log | undefined;
}

/** An agent program and its connection to the control plane. */
export class Agent {
  readonly #runner: Runner;
  readonly #reasoners = new Reasoners();
  readonly #lifetime: Lifetime;
  readonly #handler: Handler;

  /**
   * Answers a request to the agent: `/reasoners/{name}`, `/webhooks/approval`, `/_internal/executions/{id}/cancel` and
   * `/health`. Mount it in any server that knows Request and Response.
   *
   * Callbacks are proven, calls of reasoners are not: whoever reaches it can start runs of this agent and cancel those
   * that go on. Let nobody but the control plane reach it.
   */
  readonly handler = (request: Request): Promise<Response> => this.#handler.answer(request);

  /**
   * @throws {ConnectionFailed} the control plane's address is none.
   * @throws {KeyRefused} the API key cannot be one.
   * @throws {TypeError} `nodeId` is none, or `callback` is none of its words.
   */
  constructor(options: AgentOptions) {
    const { version = "", maxConcurrent } = options;
    this.#runner = new Runner({
      nodeId: options.nodeId,
      controlPlaneURL: options.controlPlaneURL,
      apiKey: options.apiKey,
      callbackURL: options.callbackURL ?? setting("HOLDSHORT_CALLBACK_URL"),
      callback: options.callback ?? "auto",
      fetch: options.fetch,
      log: options.log ?? onStandardError,
    });
    this.#lifetime = new Lifetime(this.#runner, this.#reasoners, { version, maxConcurrent });
    this.#handler = new Handler(this.#runner, this.#reasoners, this.#lifetime, version);
  }

  /** The agent's name. */
  get nodeId(): string {
    return this.#runner.nodeId;
  }

  /** Where the control plane is. */
  get controlPlaneURL(): string {
    return this.#runner.controlPlaneURL;
  }

  /** The id of the run that this code is part of; undefined outside one. */
  get executionId(): string | undefined {
    return this.#scope()?.state.executionId;
  }

  /** True while the control plane knows this process and gives it runs. */
  get registered(): boolean {
    return this.#lifetime.registered;
  }

  /**
   * Register a function that can be called by its name.
   *
   * What blocks the event loop for longer than the lease of 15 s makes the process count as gone.
   *
   * @param name 1-128 of `A-Z a-z 0-9 . _ ~ : -`.
   * @param options its time limit, and how it is started again.
   * @param fn gets the input as it came (check it) and its run, and returns JSON.
   * @throws {TypeError} the name or an option is none, or the name is taken.
   */
  reasoner<Input = unknown, Output = unknown>(name: string, fn: ReasonerFunction<Input, Output>): void;
  reasoner<Input = unknown, Output = unknown>(
    name: string,
    options: ReasonerOptions,
    fn: ReasonerFunction<Input, Output>,
  ): void;
  reasoner<Input, Output>(
    name: string,
    ...rest: [ReasonerFunction<Input, Output>] | [ReasonerOptions, ReasonerFunction<Input, Output>]
  ): void {
    const [options, fn] = rest.length === 1 ? [{}, rest[0]] : rest;
    this.#reasoners.add(name, options, fn as ReasonerFunction<unknown, unknown>);
    this.#lifetime.changed();
  }

  /**
   * Register at the control plane and stay registered; it gives runs to this process from then on.
   *
   * @returns after the first try. Where the control plane is away it goes on trying; see `registered`.
   */
  async start(): Promise<void> {
    await this.#lifetime.begin();
  }

  /** Return once the control plane knows this process; false when it was stopped before, or not started. */
  async whenRegistered(): Promise<boolean> {
    return await this.#lifetime.untilRegistered();
  }

  /**
   * Take nothing new, hand back what waits (which is no end and no failure), let what runs finish, and go. What has not
   * finished then is given to another process.
   *
   * @param options `drainSeconds`: how long running reasoners may go on; 8 when absent.
   */
  async stop({ drainSeconds = DRAIN_S }: { readonly drainSeconds?: number | undefined } = {}): Promise<void> {
    await this.#lifetime.end(1000 * drainSeconds);
  }

  /**
   * A run that the program starts itself; the same id continues it. Its end is reported when `fn` ends.
   *
   * @param executionId 1-128 of `A-Z a-z 0-9 . _ ~ : -`; a new one when undefined.
   * @param input any JSON, kept with the run.
   * @param fn the run's code; what it throws ends the run as failed.
   * @returns its result, as JSON made it.
   * @throws {ExecutionFinished} the run under this id is over.
   * @throws {ExecutionExists} another node owns it.
   * @throws {ConnectionFailed} the control plane was not reached in 30 s.
   * @throws {RunEnded} the run was ended.
   */
  async execution<Output>(
    executionId: string | undefined,
    input: unknown,
    fn: (run: Run) => Output | PromiseLike<Output>,
  ): Promise<Output> {
    const state = await this.#runner.begun(executionId, input);
    const run = new Run(this.#runner, state);
    return (await conclude(state, undefined, () => fn(run))) as Output;
  }

  /**
   * Ask a person for a decision and wait, for days if need be.
   *
   * A run that is started again under its execution id finds its question, and its answer, again. The n-th pause under
   * an id asks its n-th round; one that threw, or was given up, does not count, so that trying again finds the same
   * question. Restarts of the control plane are not noticed.
   *
   * @returns what was decided: ask `result.approved`. A rejection is returned too: the code goes on, but can ask
   *   nothing new.
   * @throws {NoExecution} outside a run, without `executionId`.
   * @throws {ExecutionFinished} the run is over, so nothing new can be asked.
   * @throws {RequestConflict} the id stands for another payload, form or `onExpiry`.
   * @throws {ValuesInvalid} it is approved with values that do not fit the form.
   * @throws {ConnectionFailed} `timeoutMs` passed without the control plane; nothing was decided.
   * @throws {RunEnded} the run must end: `ExecutionCancelled`, `HandedBack`, `StaleInstance`, `ExecutionTimedOut`.
   */
  async pause(options: PauseOptions = {}): Promise<ApprovalResult> {
    return await pauseFrom(this.#runner, this.#scope(), options);
  }

  /**
   * Ask a person something that may take hours or days: a pause with something to fill in. The answer is kept with the
   * run, so what is secret is a question for `humanFeedback`.
   *
   * @param question at most 20,000 characters; a long one is shown below a title that is its beginning.
   * @param options what may be answered.
   * @returns an answer is `approved`, and `result.values` what was answered; null for everything else.
   * @throws {InvalidField} nobody could answer that; nothing was asked.
   * @throws {ValuesInvalid} it was answered with what does not fit.
   */
  async ask(question: string, options: AskOptions = {}): Promise<ApprovalResult> {
    return await askFrom(this.#runner, this.#scope(), question, options);
  }

  /**
   * Wait for a question asked before, perhaps by a process that is gone; a decision made meanwhile is returned.
   *
   * Without an execution (here or by name) the node's approvals under the id are looked up: the one that is pending,
   * else the newest when one execution asked.
   *
   * @param approvalRequestId under which it was asked.
   * @param options whose it is and how long to wait.
   * @throws {NotFound} nobody asked under this id.
   * @throws {AmbiguousRequestId} several could be meant; the error lists them.
   * @throws {WaitTimeout} still pending, and can be waited for again.
   * @throws {ConnectionFailed} `timeoutMs` passed before the control plane could say how it stands.
   */
  async waitForResume(approvalRequestId: string, options: ResumeOptions = {}): Promise<ApprovalResult> {
    return await resumeFrom(this.#runner, this.#scope(), approvalRequestId, options);
  }

  /**
   * Ask a person for what only they can give, a one-time code or a yes, and wait: seconds to half an hour.
   *
   * The answer goes to this call and is stored nowhere, so keep it out of logs, notes, results and steps. A run that is
   * started again asks again, so make a new `uniqueId` each time.
   *
   * @param message the question, 1-4,000 characters.
   * @param options its id, its time and what may be answered.
   * @returns the text; for yes_no `yes` or `no`, for multiple_choice the option.
   * @throws {FeedbackExpired} nobody answered in time. That is never an approval.
   * @throws {FeedbackCancelled} the question was withdrawn.
   * @throws {InvalidField} a field breaks its rule; nothing was asked.
   */
  async humanFeedback(message: string, options: FeedbackOptions): Promise<string> {
    return await feedbackFrom(this.#runner, this.#scope(), message, options);
  }

  /**
   * Do something once: its result is stored before it is returned, and a restarted run gets what was stored.
   *
   * A run that dies while `fn` works does it again, so `fn` should bear being done twice. What it throws is not stored;
   * calling again right after is the same step. A step is known by its branch, its name and which of that name it is
   * there, counted when it is called: where an order may change, put what tells the calls apart into the name, or use
   * `branch`. A step inside `fn` is part of this one.
   *
   * @param name 1-200 characters, no control characters.
   * @param fn its result is JSON up to 1 MiB; what comes back is what JSON made of it, the first time too.
   * @throws {NoExecution} outside a run.
   * @throws {StepsSideBySide} one of this name is in progress in this branch, called at another time.
   * @throws {TypeError} the result is no JSON; nothing was stored.
   * @throws {StepTooLarge} the result is over 1 MiB; nothing was stored.
   * @throws {ExecutionFinished} the run was ended meanwhile. After a rejection or an expiry, where the code may clean
   *   up, the result is returned without being stored.
   */
  async step<T>(name: string, fn: () => T | PromiseLike<T>): Promise<T> {
    return await this.#run().step(name, fn);
  }

  /**
   * Do some work in a branch, beside others: its steps and its pauses without an id are counted for themselves, so that
   * branches may get along in any order. The same name again goes on in it; a branch in a branch is a part of that.
   *
   * @param name 1-200 characters, no control characters.
   * @param fn the work.
   */
  async branch<T>(name: string, fn: () => T | PromiseLike<T>): Promise<T> {
    return await this.#run().branch(name, fn);
  }

  /**
   * Keep a note with the current run, in the background. It never throws into the run.
   *
   * @param message for whoever reads the run.
   * @param tags words to find it by.
   */
  note(message: string, tags: readonly string[] = []): void {
    const scope = this.#scope();
    if (scope === undefined) this.#runner.log.warn("a note outside a run was dropped");
    else new Run(this.#runner, scope.state).note(message, tags);
  }

  /**
   * Take this as the agent's address, unless one was configured, and register it if the agent is started.
   *
   * @param url base URL where the control plane reaches this agent.
   */
  reachableAt(url: string): void {
    this.#runner.reachableAt(url);
    this.#lifetime.changed();
  }

  /** Where the code is in a run of this agent; undefined outside one. */
  #scope(): Scope | undefined {
    const scope = scopeHere();
    return scope?.state.session === this.#runner.session ? scope : undefined;
  }

  #run(): Run {
    const scope = this.#scope();
    if (scope === undefined) throw new NoExecution();
    return new Run(this.#runner, scope.state);
  }
}

const onStandardError: Log = {
  info: (message) => console.warn(`holdshort: ${message}`),
  warn: (message) => console.warn(`holdshort: ${message}`),
  error: (message) => console.error(`holdshort: ${message}`),
};
