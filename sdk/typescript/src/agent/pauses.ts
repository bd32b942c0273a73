// Who waits for which answer in this process. Registered before the question is asked, so no answer is too early.

import { HandedBack } from "../errors.js";
import type { ApprovalResult } from "../result.js";

const REMEMBERED = 10_000;

/** Names one round of one question; known before the control plane has answered. */
export interface Key {
  readonly executionId: string;
  readonly approvalRequestId: string;
  readonly round: number;
}

/** What a wait ends with: an answer, or the end of the waiting without one. */
export type Outcome = ApprovalResult | HandedBack;

/** One awaited answer, shared by all who wait for it; `secret` signs its callbacks. */
export class Pause {
  readonly secret: string;
  readonly settled: Promise<Outcome>;
  approvalId = "";
  outcome: Outcome | undefined;
  #waiting = 0;
  #resolve!: (outcome: Outcome) => void;

  constructor(secret: string) {
    this.secret = secret;
    this.settled = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** Hand over how it ends; the first time counts. */
  settle(outcome: Outcome): void {
    if (this.outcome !== undefined) return;
    this.outcome = outcome;
    this.#resolve(outcome);
  }

  /** Count one more who waits. */
  join(): void {
    this.#waiting += 1;
  }

  /** Count one less; true when nobody waits any more. */
  leave(): boolean {
    this.#waiting -= 1;
    return this.#waiting === 0;
  }
}

/** The pauses of one process, and the last answered ones, whose callbacks may still be repeated. */
export class Registry {
  readonly #makeSecret: () => string;
  readonly #waiting = new Map<string, Pause>();
  readonly #answered = new Map<string, string>();
  draining = false;

  /** @param makeSecret returns a new callback secret, 16 characters or more. */
  constructor(makeSecret: () => string) {
    this.#makeSecret = makeSecret;
  }

  /** How many questions are waited for. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Wait under this key; `release` it afterwards. */
  register(key: Key): Pause {
    const name = nameOf(key);
    let pause = this.#waiting.get(name);
    if (pause === undefined) {
      pause = new Pause(this.#makeSecret());
      this.#waiting.set(name, pause);
    }
    pause.join();
    return pause;
  }

  /** Stop waiting; an answered pause is remembered for repeated callbacks. */
  release(key: Key, pause: Pause): void {
    if (!pause.leave()) return;
    const name = nameOf(key);
    this.#waiting.delete(name);
    if (pause.outcome === undefined || pause.outcome instanceof HandedBack) return;
    this.#answered.set(name, pause.secret);
    if (this.#answered.size <= REMEMBERED) return;
    for (const oldest of this.#answered.keys()) {
      this.#answered.delete(oldest);
      return;
    }
  }

  /** The secret that callbacks under this key are signed with; undefined when nobody waits or waited. */
  secret(key: Key): string | undefined {
    const name = nameOf(key);
    return this.#waiting.get(name)?.secret ?? this.#answered.get(name);
  }

  /** Hand over an answer, once; true when somebody waits for it or waited. */
  resolve(result: ApprovalResult): boolean {
    const name = nameOf(result);
    const pause = this.#waiting.get(name);
    pause?.settle(result);
    return pause !== undefined || this.#answered.has(name);
  }

  /** End the waits for these approvals without an answer; others go on. */
  lose(approvalIds: ReadonlySet<string>, end: HandedBack): void {
    for (const pause of this.#waiting.values()) if (approvalIds.has(pause.approvalId)) pause.settle(end);
  }

  /** End every wait without an answer: the process stops, the runs stay waiting. */
  handBack(): void {
    this.draining = true;
    for (const pause of this.#waiting.values()) pause.settle(new HandedBack());
  }
}

function nameOf(key: Key): string {
  return JSON.stringify([key.executionId, key.approvalRequestId, key.round]);
}
