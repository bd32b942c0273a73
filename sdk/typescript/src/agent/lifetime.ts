// From when an agent is served until it stops: registered, given runs, drained within a bound, and gone.

import type { Registration } from "../routes.js";
import { deadline, type Deadline } from "../timers.js";
import { Calls } from "./calls.js";
import { Dispatches } from "./dispatches.js";
import { Instance, LEASE_S } from "./instance.js";
import type { Reasoners } from "./reasoners.js";
import type { Runner } from "./runner.js";

/** What an agent says of itself beside its address. */
export interface Described {
  readonly version: string;
  readonly maxConcurrent: number | undefined;
}

/** What goes on in the background while an agent is served. */
export class Lifetime {
  readonly dispatches: Dispatches;
  readonly calls: Calls;
  readonly #runner: Runner;
  readonly #reasoners: Reasoners;
  readonly #described: Described;
  #instance: Instance | undefined;
  #until: Deadline | undefined;
  #ending: Promise<void> | undefined;

  /**
   * @param runner of the agent.
   * @param reasoners of the agent.
   * @param described what is registered of it.
   */
  constructor(runner: Runner, reasoners: Reasoners, described: Described) {
    this.#runner = runner;
    this.#reasoners = reasoners;
    this.#described = described;
    this.dispatches = new Dispatches(runner, reasoners);
    this.calls = new Calls(runner, reasoners);
  }

  /** True while the control plane can give runs to this process. */
  get registered(): boolean {
    return this.#instance?.registered ?? false;
  }

  /** Register, or go on with it. Returns after the first try; without an address there is none. */
  async begin(): Promise<void> {
    await this.#ending;
    if (this.#instance === undefined) this.#register();
    await this.#instance?.turned();
  }

  /** The agent has an address, or a reasoner, that it had not at the start. */
  changed(): void {
    this.#instance?.lookAgain();
  }

  /** Return once the control plane knows this instance; false when it was stopped before. */
  async untilRegistered(): Promise<boolean> {
    const instance = this.#instance;
    while (instance?.registered === false && (await instance.turned()));
    return instance?.registered ?? false;
  }

  /** Take nothing new, hand back what waits, and let what runs finish for so many milliseconds; once. */
  beginToEnd(ms: number): void {
    if (this.#until !== undefined) return;
    this.#until = deadline(ms);
    this.#instance?.drain();
    this.#runner.registry.handBack();
  }

  /** Return when the time is up or everything has ended, and the control plane knows that this process is gone. */
  async end(ms: number): Promise<void> {
    this.beginToEnd(ms);
    this.#ending ??= this.#end().finally(() => {
      this.#ending = undefined;
    });
    await this.#ending;
  }

  async #end(): Promise<void> {
    const left = this.#until?.left() ?? 0;
    await Promise.all([this.dispatches.finish(left), this.calls.finish(left)]);
    await this.#instance?.stop();
    this.#instance = undefined;
    this.dispatches.holder = undefined;
  }

  #register(): void {
    const runner = this.#runner;
    runner.registry.draining = false;
    this.#until = undefined;
    this.dispatches.instanceId = crypto.randomUUID().replaceAll("-", "");
    this.#instance = new Instance({
      log: runner.log,
      sender: runner.connected(),
      describe: () => this.#registration(),
      lost: () => this.dispatches.letGo(),
    });
    this.dispatches.holder = this.#instance;
  }

  #registration(): Registration | undefined {
    const { nodeId, baseURL } = this.#runner;
    if (baseURL === undefined) return undefined;
    return {
      nodeId,
      baseUrl: baseURL,
      instanceId: this.dispatches.instanceId,
      version: this.#described.version,
      reasoners: this.#reasoners.all.map(({ name, timeoutSeconds, resume }) => ({ name, timeoutSeconds, resume })),
      features: { replay: true, fence: true },
      leaseSeconds: LEASE_S,
      maxConcurrent: this.#described.maxConcurrent,
    };
  }
}
