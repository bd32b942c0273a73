// What an agent's runs need: a connection, an address for callbacks, and who waits for which answer.

import { CallbackUnknown, ExecutionFinished, NoExecution } from "../errors.js";
import { originOf } from "../origin.js";
import { createExecution } from "../routes.js";
import { HttpSender } from "../sender.js";
import type { Fetch } from "../transport.js";
import type { Log } from "./log.js";
import { CALLBACK_PATH } from "./paths.js";
import { Registry } from "./pauses.js";
import { newId, newSecret } from "./random.js";
import { Rounds } from "./rounds.js";
import { RunState } from "./runState.js";
import type { Scope } from "./scopes.js";
import { Session } from "./session.js";

/** How answers come: "push" by callback, "pull" by one held call, "auto" by whichever is first. */
export type Callback = "push" | "pull" | "auto";

const CALLBACKS: ReadonlySet<string> = new Set<Callback>(["push", "pull", "auto"]);
const NODE_ID = /^[A-Za-z0-9._~:-]{1,128}$/;
const START_MS = 30_000;

/** Where an agent is and whom it talks to. */
export interface RunnerOptions {
  readonly nodeId: string;
  readonly controlPlaneURL: string | undefined;
  readonly apiKey: string | undefined;
  readonly callbackURL: string | undefined;
  readonly callback: Callback;
  readonly fetch: Fetch | undefined;
  readonly log: Log;
}

/** Whose round a question is. */
export interface Asking {
  readonly rounds: Rounds;
  readonly executionId: string;
  /** The run whose own question it is. */
  readonly state: RunState | undefined;
}

/** Starts the runs of one agent. */
export class Runner {
  readonly nodeId: string;
  readonly log: Log;
  readonly registry = new Registry(newSecret);
  readonly session: Session;
  /** Base URL where the control plane reaches this agent, without a slash at its end; undefined while not known. */
  baseURL: string | undefined;
  readonly #options: RunnerOptions;
  readonly #outside = new Map<string, Rounds>();

  /** @throws {TypeError} the node's id is none, or the callback is none of the three words. */
  constructor(options: RunnerOptions) {
    if (!CALLBACKS.has(options.callback)) {
      throw new TypeError(`callback must be "push", "pull" or "auto", not ${JSON.stringify(options.callback)}`);
    }
    if (!NODE_ID.test(options.nodeId)) throw new TypeError("nodeId is 1-128 of A-Z a-z 0-9 . _ ~ : -");
    this.#options = options;
    this.nodeId = options.nodeId;
    this.log = options.log;
    this.baseURL = withoutSlash(options.callbackURL);
    this.session = new Session(this.connected(), this.registry, options.callback !== "push", options.log);
  }

  /** Where the control plane is. */
  get controlPlaneURL(): string {
    return originOf(this.#options.controlPlaneURL);
  }

  /** A connection of its own, that tries for as long as its caller waits. */
  connected(): HttpSender {
    const { controlPlaneURL, apiKey, fetch: send } = this.#options;
    return new HttpSender({ baseURL: controlPlaneURL, apiKey, fetch: send, patienceMs: null });
  }

  /** Take this as the agent's address, unless there is one. */
  reachableAt(url: string): void {
    this.baseURL ??= withoutSlash(url);
  }

  /**
   * Where decisions are pushed; undefined for pull only.
   *
   * @throws {CallbackUnknown} callback is "push", and there is no address.
   */
  callbackTarget(): string | undefined {
    const { callback } = this.#options;
    if (callback === "pull") return undefined;
    if (this.baseURL !== undefined) return this.baseURL + CALLBACK_PATH;
    if (callback === "push") throw new CallbackUnknown();
    return undefined;
  }

  /**
   * Whose round a question is that some code asks.
   *
   * @param scope where the code is.
   * @param executionId of the run that is named; the code's own when undefined.
   * @throws {NoExecution} there is neither.
   */
  asking(scope: Scope | undefined, executionId: string | undefined): Asking {
    if (scope !== undefined && (executionId === undefined || executionId === scope.state.executionId)) {
      return { rounds: scope.state.rounds, executionId: scope.state.executionId, state: scope.state };
    }
    if (executionId === undefined) throw new NoExecution();
    const rounds = this.#outside.get(executionId) ?? new Rounds();
    this.#outside.set(executionId, rounds);
    return { rounds, executionId, state: undefined };
  }

  /**
   * Begin a run that this program starts itself; the same id continues it.
   *
   * @throws {ExecutionFinished} the run under this id is over; `details.execution` is how it ended.
   * @throws {ExecutionExists} another node owns it.
   * @throws {ConnectionFailed} the control plane was not reached in 30 s.
   */
  async begun(
    executionId: string | undefined,
    input: unknown,
    reasoner?: string,
    signal?: AbortSignal,
  ): Promise<RunState> {
    const start = createExecution(this.nodeId, executionId ?? newId("exec"), { reasoner, input });
    const standing = await this.session.sender.send(start, { patienceMs: START_MS, signal });
    if (standing.final && !standing.endedByApproval) {
      const told = `execution ${standing.executionId} is ${standing.status} already; start a new one`;
      throw new ExecutionFinished(told, { details: { execution_status: standing.status, execution: standing } });
    }
    return new RunState(this.session, this.log, {
      executionId: standing.executionId,
      reasoner: reasoner ?? "run",
      input: standing.input,
      fence: undefined,
      storedSteps: executionId === undefined ? 0 : undefined,
    });
  }
}

function withoutSlash(url: string | undefined): string | undefined {
  return url?.replace(/\/+$/, "");
}
