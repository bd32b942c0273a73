// The stored steps of one run, by where they stand. Book-keeping only: no clock, no I/O.

import { hex, utf8 } from "../bytes.js";
import type { Step } from "../runWire.js";
import type { Ticket } from "./branches.js";

const LONGEST_PLACE = 240;

/** The place of a call, which its step keeps as `previous`: its branch, and which of its name it is there. */
export async function placeOf(ticket: Ticket): Promise<string> {
  const place = `${ticket.branch}:${ticket.count}`;
  if ([...place].length <= LONGEST_PLACE) return place;
  // The control plane takes no longer ones.
  return `~${hex(new Uint8Array(await crypto.subtle.digest("SHA-256", utf8(place))))}`;
}

/** The stored steps; `open` it before the first step. */
export class Book {
  readonly #stored = new Map<string, Step>();
  readonly #known = new Map<string, number>();
  readonly #numbers = new Map<string, number>();
  readonly #asked = new Set<string>();

  /** Take in what earlier tries of the run stored. */
  open(stored: readonly Step[]): void {
    for (const step of stored) {
      this.#known.set(step.name, Math.max(this.#known.get(step.name) ?? 0, step.occurrence));
      this.#stored.set(keyOf(step.previous ?? "", step.name), step);
    }
  }

  /** The stored step that a call is; undefined for one that was never stored. */
  find(place: string, name: string): Step | undefined {
    const key = keyOf(place, name);
    this.#asked.add(key);
    return this.#stored.get(key);
  }

  /** The occurrence of a new step: the next that nobody has; the same when it is tried again at its place. */
  number(place: string, name: string): number {
    const key = keyOf(place, name);
    const before = this.#numbers.get(key);
    if (before !== undefined) return before;
    const number = (this.#known.get(name) ?? 0) + 1;
    this.#known.set(name, number);
    this.#numbers.set(key, number);
    return number;
  }

  /** Names of the steps that are stored and were not asked for. */
  get leftOver(): string[] {
    return [...this.#stored].filter(([key]) => !this.#asked.has(key)).map(([, step]) => step.name);
  }
}

function keyOf(place: string, name: string): string {
  return JSON.stringify([place, name]);
}
