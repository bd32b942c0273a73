// This process as an instance of its node: registered, kept alive, drained, and at the end gone.

import { type Call, delayAfter, type Sender } from "../core.js";
import { NotAuthorised, NotFound } from "../errors.js";
import { handBack, heartbeat, type HeldRun, type Registration, registerNode, shutdownNode } from "../routes.js";
import { sleep, withTimeout } from "../timers.js";
import { Bell } from "./bell.js";
import { said } from "./ends.js";
import type { Log } from "./log.js";
import { type Stopping, within } from "./signals.js";

/** How long an instance counts as alive after a sign of life, in seconds. */
export const LEASE_S = 15;
const BEAT_MS = 5_000;
const FASTEST_MS = 50;
const LAST_MS = 3_000;
const WORD_MS = 1_000;
const GATHER_MS = 20;
const BATCH = 1_000;
const UNKNOWN = "node_not_found";
// A sign of life is not written down while so much of the lease is left.
const SURE = 2 / 3;

/** What an instance is told and asks for. */
export interface InstanceHost {
  readonly log: Log;
  /** Reaches the control plane: a connection of its own, so that a crowd of other calls never makes a beat late. */
  readonly sender: Sender;
  /** What is registered; undefined while no address is known. */
  describe(): Registration | undefined;
  /** The control plane took this instance for gone: the runs that wait are not its own any more. */
  lost(): void;
}

/**
 * Keeps one instance registered until `stop`.
 *
 * The control plane may be away at any time: that is logged once, and tried again for as long as the process lives. So
 * is a refusal, as an error: a node may be moved to this key, and what is wrong may be the control plane's.
 */
export class Instance {
  readonly #host: InstanceHost;
  readonly #over = new AbortController();
  readonly #wake = new Bell();
  readonly #turned = new Bell();
  readonly #given: HeldRun[] = [];
  readonly #living: Promise<void>;
  #giving: Promise<void> | undefined;
  #known: Registration | undefined;
  #taken = "";
  #registered = false;
  #beatMs = BEAT_MS;
  #heldUntil = 0;
  #draining = false;
  #toldDraining = false;
  #stopping = false;
  #ended = false;
  #failures = 0;
  #saidRefused = false;

  /** @param host what it is told and asks for. */
  constructor(host: InstanceHost) {
    this.#host = host;
    this.#living = this.#live();
  }

  /** True while the control plane knows this instance, as far as it said. */
  get registered(): boolean {
    return this.#registered;
  }

  /** Return after the next try to register or to give a sign of life; false when there is none any more. */
  async turned(): Promise<boolean> {
    if (!this.#ended) await this.#turned.heard();
    return !this.#ended;
  }

  /** What is described may have changed. */
  lookAgain(): void {
    this.#wake.ring();
  }

  /** Take nothing new from here on, and say so at once. */
  drain(): void {
    this.#draining = true;
    this.#wake.ring();
  }

  /** Return once the lease is surely held; a process that stood still for long must ask first. */
  async confirmed(stopping: Stopping): Promise<void> {
    if (this.#known !== undefined && !this.#held) this.#wake.ring();
    while (this.#known !== undefined && !this.#held && !this.#ended) await this.#turned.heard(Infinity, stopping);
  }

  /** Give up a run whose code has ended, together with those that end at the same time. */
  handBack(run: HeldRun): void {
    this.#given.push(run);
    this.#giving ??= this.#giveBack();
  }

  /** Let what was handed back be kept, and say that this instance is gone; takes a few seconds at most. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.drain();
    const began = performance.now();
    await within(Promise.allSettled([this.#living, this.#giving]), LAST_MS);
    this.#over.abort();
    await Promise.allSettled([this.#living, this.#giving]);
    const left = this.#failures > 0 ? 0 : LAST_MS - (performance.now() - began);
    if (this.#known !== undefined) await this.#shutDown(this.#known, Math.max(WORD_MS, left));
  }

  get #held(): boolean {
    return this.#registered && performance.now() < this.#heldUntil;
  }

  async #shutDown({ nodeId, instanceId }: Registration, ms: number): Promise<void> {
    try {
      const gone = shutdownNode(nodeId, instanceId);
      await withTimeout(ms, undefined, (signal) => this.#host.sender.send(gone, { patienceMs: ms, signal }));
    } catch (error) {
      this.#host.log.warn(`the control plane was not told that this instance stops; its lease passes: ${said(error)}`);
    }
  }

  async #live(): Promise<void> {
    // Begins when its owner has got hold of it.
    await Promise.resolve();
    try {
      while (!this.#stopping || (this.#registered && !this.#toldDraining)) {
        this.#wake.silence();
        const delay = await this.#turn();
        this.#turned.strike();
        await this.#wake.heard(delay, this.#over.signal);
      }
    } catch (error) {
      if (!this.#over.signal.aborted) throw error;
    } finally {
      this.#ended = true;
      this.#toldDraining = true;
      this.#turned.ring();
    }
  }

  /** Register, or give a sign of life; milliseconds until the next. */
  async #turn(): Promise<number> {
    const draining = this.#draining;
    try {
      if (!(await this.#said(draining))) return Infinity;
    } catch (error) {
      // Whatever happens, the process goes on trying.
      return this.#failed(error);
    } finally {
      this.#toldDraining ||= draining;
    }
    if (this.#failures > 0) this.#host.log.info(`the control plane is back; ${this.#known?.nodeId} is registered`);
    this.#failures = 0;
    this.#saidRefused = false;
    return Math.max(FASTEST_MS, this.#beatMs) * (0.8 + 0.2 * Math.random());
  }

  async #said(draining: boolean): Promise<boolean> {
    const described = draining ? undefined : this.#host.describe();
    if (this.#registered && (draining || this.#taken === JSON.stringify(described))) {
      await this.#beat();
      return true;
    }
    if (described === undefined) return this.#unknown(draining);
    await this.#register(described);
    return true;
  }

  #unknown(draining: boolean): false {
    if (!draining)
      this.#host.log.warn("give a callbackURL: without one the control plane does not know where this agent is");
    return false;
  }

  #failed(error: unknown): number {
    const { log } = this.#host;
    if (this.#over.signal.aborted) return 0;
    if (error instanceof NotFound && this.#registered) {
      const why = this.#held ? "did another process register its address? " : "";
      log.warn(`the control plane does not know this instance; it registers again: ${why}${error.message}`);
      this.#registered = false;
      if (error.code === UNKNOWN) this.#host.lost();
      return 0;
    }
    this.#failures += 1;
    const doing = this.#registered ? "give a sign of life" : "register";
    if (error instanceof NotAuthorised) {
      if (!this.#saidRefused)
        log.error(`the control plane refuses that this agent should ${doing}, trying on: ${said(error)}`);
      this.#saidRefused = true;
    } else if (this.#failures === 1) log.warn(`could not ${doing} at the control plane, trying on: ${said(error)}`);
    const delay = delayAfter(undefined, this.#failures, Math.random());
    return this.#registered ? Math.min(delay, BEAT_MS) : delay;
  }

  async #register(described: Registration): Promise<void> {
    this.#known = described;
    const began = performance.now();
    const answer = await this.#once(registerNode(described));
    this.#registered = true;
    this.#taken = JSON.stringify(described);
    this.#beatMs = 1000 * answer.heartbeatSeconds;
    this.#heldUntil = began + SURE * 1000 * answer.leaseSeconds;
  }

  async #beat(): Promise<void> {
    if (this.#known === undefined) return;
    const { nodeId, instanceId } = this.#known;
    const began = performance.now();
    const beaten = await this.#once(heartbeat(nodeId, instanceId, this.#draining ? "draining" : "ready"));
    this.#heldUntil = began + SURE * 1000 * beaten.leaseSeconds;
  }

  /** One try: the next turn is the retry. */
  #once<T>(call: Call<T>): Promise<T> {
    return this.#host.sender.send(call, { patienceMs: 0, signal: this.#over.signal });
  }

  // Not before the control plane knows that this instance takes nothing new: it would have them back at once.
  get #mayGiveBack(): boolean {
    return this.#draining ? this.#toldDraining : this.#registered;
  }

  async #giveBack(): Promise<void> {
    const { signal } = this.#over;
    try {
      while (!this.#mayGiveBack && !this.#ended) await this.#turned.heard(Infinity, signal);
      await sleep(GATHER_MS, signal);
      while (this.#given.length > 0 && this.#known !== undefined) await this.#giveBatch(this.#known, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.#giving = undefined;
    }
  }

  async #giveBatch({ nodeId, instanceId }: Registration, signal: AbortSignal): Promise<void> {
    const batch = this.#given.splice(0, BATCH);
    try {
      await this.#host.sender.send(handBack(nodeId, instanceId, batch), { patienceMs: null, signal });
    } catch (error) {
      if (signal.aborted) throw error;
      this.#host.log.warn(`${batch.length} runs are handed back when the lease passes: ${said(error)}`);
    }
  }
}
