// One held call for all pauses of a process, re-armed when one is added; and the slow look that backs up pushes.

import type { Sender } from "../core.js";
import { HoldshortError, NotAuthorised } from "../errors.js";
import { waitForApprovals } from "../routes.js";
import { after, sleep } from "../timers.js";
import type { ApprovalStatus, Settled } from "../wire.js";
import { said } from "./ends.js";
import type { Log } from "./log.js";

const HOLD_S = 50;
const CALL_LIMIT = 10_000;
const PACE_MS = 1_000;
const POLL_MS = 60_000;
const REFUSED_MS = 1_000;
const TIMES_REFUSED = 3;
const GATHER_LEAST_MS = 10;
const GATHER_MOST_MS = 1_000;
const GATHER_EACH_MS = 1 / 20;

/** Who is told what becomes of the waiting. */
export interface Told {
  /** An approval is final. */
  settled(approval: ApprovalStatus): void;
  /** These cannot be waited for, as the control plane lets this program in no more. */
  refused(approvalIds: ReadonlySet<string>, error: NotAuthorised): void;
}

/** Waits for any number of approvals with one call at a time for each 10,000 of them. */
export class SharedWait {
  readonly #sender: Sender;
  readonly #held: boolean;
  readonly #log: Log;
  readonly #told: Told;
  readonly #ids = new Map<string, number>();
  #running: AbortController | undefined;
  #rearm: (() => void) | undefined;
  #saidRefused = false;

  /**
   * @param sender asks the control plane.
   * @param held true holds the call until something is final; false looks once a minute.
   * @param log where it is said that a call was refused.
   * @param told who is told.
   */
  constructor(sender: Sender, held: boolean, log: Log, told: Told) {
    this.#sender = sender;
    this.#held = held;
    this.#log = log;
    this.#told = told;
  }

  /** Wait for this approval too, for one more. */
  add(approvalId: string): void {
    this.#ids.set(approvalId, (this.#ids.get(approvalId) ?? 0) + 1);
    this.#rearm?.();
    if (this.#running !== undefined) return;
    const running = new AbortController();
    this.#running = running;
    void this.#run(running);
  }

  /** One less waits for it. A call that still names it is left open, unless it was the last one. */
  remove(approvalId: string): void {
    const waiting = this.#ids.get(approvalId) ?? 0;
    if (waiting > 1) this.#ids.set(approvalId, waiting - 1);
    else this.#ids.delete(approvalId);
    if (this.#ids.size > 0) return;
    this.#running?.abort();
    this.#running = undefined;
  }

  async #run(running: AbortController): Promise<void> {
    const { signal } = running;
    while (!signal.aborted && this.#ids.size > 0) {
      try {
        await (this.#held ? this.#holdOnce(signal) : this.#lookOnce(signal));
      } catch (error) {
        if (signal.aborted) break;
        this.#log.warn(`the shared wait begins again: ${said(error)}`);
        await sleep(REFUSED_MS, signal).catch(() => undefined);
      }
    }
    if (this.#running === running) this.#running = undefined;
  }

  /** One held call for each chunk, until one is answered or more are waited for. */
  async #holdOnce(signal: AbortSignal): Promise<void> {
    const round = new AbortController();
    const stop = (): void => round.abort();
    let cancel = (): void => undefined;
    const rearm = (): void => {
      cancel();
      cancel = after(this.#gatherMs, stop);
      this.#rearm = undefined;
    };
    this.#rearm = rearm;
    signal.addEventListener("abort", stop, { once: true });
    const looks = this.#chunks().map((ids) => this.#look(ids, HOLD_S, round.signal));
    try {
      await Promise.race(looks);
    } catch (error) {
      if (!round.signal.aborted) throw error;
    } finally {
      stop();
      cancel();
      signal.removeEventListener("abort", stop);
      if (this.#rearm === rearm) this.#rearm = undefined;
      await Promise.allSettled(looks);
    }
    // A thousand pauses that end together re-arm once, as those do that start together.
    await sleep(this.#gatherMs, signal);
  }

  async #lookOnce(signal: AbortSignal): Promise<void> {
    await sleep(POLL_MS, signal);
    for (const ids of this.#chunks()) await this.#look(ids, 0, signal);
  }

  /** The more a call carries, the rarer it is repeated. */
  get #gatherMs(): number {
    return Math.min(GATHER_MOST_MS, GATHER_LEAST_MS + this.#ids.size * GATHER_EACH_MS);
  }

  async #look(ids: readonly string[], holdSeconds: number, signal: AbortSignal): Promise<void> {
    const began = performance.now();
    const found = await this.#found(ids, holdSeconds, signal);
    const final = found?.approvals.filter((approval) => approval.final) ?? [];
    for (const approval of final) {
      this.#ids.delete(approval.approvalId);
      this.#told.settled(approval);
    }
    if (found === undefined || holdSeconds === 0 || final.length > 0) return;
    // A control plane with too many waits answers at once; that must not become a busy loop.
    await sleep(Math.max(0, PACE_MS - (performance.now() - began)), signal);
  }

  /** What is final of these; undefined when that was refused. */
  async #found(ids: readonly string[], holdSeconds: number, signal: AbortSignal): Promise<Settled | undefined> {
    for (let times = 1; times <= TIMES_REFUSED; times += 1) {
      try {
        const found = await this.#sender.send(waitForApprovals(ids, holdSeconds), { patienceMs: null, signal });
        this.#saidRefused = false;
        return found;
      } catch (error) {
        if (!(error instanceof HoldshortError)) throw error;
        if (!(error instanceof NotAuthorised)) {
          this.#log.warn(`the shared wait was refused, trying again: ${error.message}`);
          await sleep(REFUSED_MS, signal);
          return undefined;
        }
        this.#refused(ids, error, times);
      }
      await sleep(REFUSED_MS, signal);
    }
    return undefined;
  }

  /** One such answer may be a server's that only starts or a proxy's; several are the end of the key. */
  #refused(ids: readonly string[], error: NotAuthorised, times: number): void {
    if (!this.#saidRefused) this.#log.error(`the control plane lets this program wait no more: ${error.message}`);
    this.#saidRefused = true;
    if (times === TIMES_REFUSED) this.#told.refused(new Set(ids), error);
  }

  #chunks(): string[][] {
    const ids = [...this.#ids.keys()];
    const chunks: string[][] = [];
    for (let at = 0; at < ids.length; at += CALL_LIMIT) chunks.push(ids.slice(at, at + CALL_LIMIT));
    return chunks;
  }
}
