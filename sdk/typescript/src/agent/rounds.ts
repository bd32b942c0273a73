// How often what was asked: counters from 1 on in the order of the calls, the same on every replay.

import type { Key } from "./pauses.js";

const LONGEST_NAME = 200;

/** Counts asks under each id, and ids that are made for a reasoner or a branch. */
export class Rounds {
  readonly #asks = new Map<string, number>();
  readonly #names = new Map<string, number>();

  /**
   * The next id that is made from a name.
   *
   * @param name of the reasoner, with the branch that asks.
   * @returns the id, and what gives its number back when nothing came of the ask.
   */
  madeId(name: string): { id: string; giveBack: () => void } {
    const short = [...name].slice(-LONGEST_NAME).join("");
    const count = next(this.#names, short);
    return { id: `pause:${short}:${count}`, giveBack: () => giveBack(this.#names, short, count) };
  }

  /**
   * The key of the next ask under an id.
   *
   * @param executionId of the run that is asked for.
   * @param approvalRequestId the caller's id.
   */
  next(executionId: string, approvalRequestId: string): Key {
    return { executionId, approvalRequestId, round: next(this.#asks, approvalRequestId) };
  }

  /** Give a round back that got no answer, so that trying again asks the same; unless a later one was counted. */
  giveBack(key: Key): void {
    giveBack(this.#asks, key.approvalRequestId, key.round);
  }
}

function next(counts: Map<string, number>, name: string): number {
  const count = (counts.get(name) ?? 0) + 1;
  counts.set(name, count);
  return count;
}

function giveBack(counts: Map<string, number>, name: string, count: number): void {
  if (counts.get(name) === count) counts.set(name, count - 1);
}
