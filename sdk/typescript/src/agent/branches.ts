// Which step of its branch a call is: counted when it is called, by its name.

import { StepsSideBySide } from "../errors.js";
import type { Turn } from "./turns.js";
import { turnHere } from "./turns.js";

const LONGEST_NAME = 200;
const BREAKS = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

/** One call of a step in progress. */
export class Ticket {
  readonly branch: string;
  readonly name: string;
  readonly count: number;
  readonly turn: Turn;
  /** True when another call could be taken for this one. */
  mixedUp = false;

  /**
   * @param branch its path.
   * @param name of the step.
   * @param count the how-many-eth of this name in this branch, from 1 on.
   * @param turn in which it was called.
   */
  constructor(branch: string, name: string, count: number, turn: Turn) {
    this.branch = branch;
    this.name = name;
    this.count = count;
    this.turn = turn;
  }
}

/** Counts the calls of steps in the branches of one run. */
export class Branches {
  readonly #counts = new Map<string, number>();
  readonly #open = new Map<string, Set<Ticket>>();

  /**
   * Count a call.
   *
   * @param branch path of the branch that it is made in, "" outside one.
   * @param name of the step.
   * @throws {StepsSideBySide} one of this name is in progress here that was called at another time.
   */
  called(branch: string, name: string): Ticket {
    const key = keyOf(branch, name);
    const open = this.#open.get(key) ?? new Set();
    const turn = turnHere();
    for (const other of open) if (other.turn !== turn) throw sideBySide(other);
    const count = (this.#counts.get(key) ?? 0) + 1;
    const ticket = new Ticket(branch, name, count, turn);
    this.#counts.set(key, count);
    this.#open.set(key, open.add(ticket));
    return ticket;
  }

  /** A call is over. One that came to nothing gives its number back, unless a later one was counted. */
  left(ticket: Ticket, done: boolean): void {
    const key = keyOf(ticket.branch, ticket.name);
    const open = this.#open.get(key);
    open?.delete(ticket);
    if (open?.size === 0) this.#open.delete(key);
    if (!done && this.#counts.get(key) === ticket.count) this.#counts.set(key, ticket.count - 1);
  }
}

/** The error of a call while another one is in progress, which is mixed up with it from here on. */
export function sideBySide(other: Ticket): StepsSideBySide {
  other.mixedUp = true;
  const where = other.branch === "" ? "this run" : `the branch ${JSON.stringify(other.branch)}`;
  return new StepsSideBySide(
    `a step ${JSON.stringify(other.name)} of ${where} is in progress, and a restarted run could take one for the` +
      " other; put what tells them apart into the name, or do them in branches",
  );
}

/**
 * Refuse what is no name, before anything is done: what is done under it could not be stored.
 *
 * @throws {TypeError} it is not 1-200 characters without control characters.
 */
export function checkName(what: string, name: unknown): asserts name is string {
  const fits = typeof name === "string" && name !== "" && [...name].length <= LONGEST_NAME && !BREAKS.test(name);
  if (fits) return;
  throw new TypeError(`${what} is 1-${LONGEST_NAME} characters, no control characters, not ${JSON.stringify(name)}`);
}

function keyOf(branch: string, name: string): string {
  return JSON.stringify([branch, name]);
}
