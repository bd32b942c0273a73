// The notes of a run: kept in order, in the background, and never thrown into it.

import { RunEnded } from "../errors.js";
import { said } from "./ends.js";
import type { Log } from "./log.js";
import { within } from "./signals.js";

const LAST_MS = 10_000;

interface Note {
  readonly message: string;
  readonly tags: readonly string[];
}

/** Keeps the notes of one run. */
export class Notes {
  readonly #executionId: string;
  readonly #keep: (message: string, tags: readonly string[], signal: AbortSignal) => Promise<unknown>;
  readonly #log: Log;
  readonly #stopped = new AbortController();
  #notes: Note[] = [];
  #telling: Promise<void> | undefined;

  /**
   * @param executionId of the run.
   * @param keep sends one note.
   * @param log where it is said that one was not kept.
   */
  constructor(
    executionId: string,
    keep: (message: string, tags: readonly string[], signal: AbortSignal) => Promise<unknown>,
    log: Log,
  ) {
    this.#executionId = executionId;
    this.#keep = keep;
    this.#log = log;
  }

  /** Keep a note, after those before it. */
  add(message: string, tags: readonly string[]): void {
    this.#notes.push({ message, tags });
    this.#telling ??= this.#tell();
  }

  /** Wait until the notes are kept, at most 10 s. */
  async flush(): Promise<void> {
    if (this.#telling === undefined) return;
    const kept = await within(
      this.#telling.then(() => true),
      LAST_MS,
    );
    if (kept) return;
    this.stop();
    this.#log.warn(`the last notes of ${this.#executionId} were not kept in time`);
  }

  /** Let go of what is not kept yet. */
  stop(): void {
    this.#stopped.abort();
  }

  async #tell(): Promise<void> {
    for (let note = this.#notes.shift(); note !== undefined; note = this.#notes.shift()) {
      if (!(await this.#kept(note))) break;
    }
    this.#telling = undefined;
  }

  async #kept({ message, tags }: Note): Promise<boolean> {
    try {
      await this.#keep(message, tags, this.#stopped.signal);
    } catch (error) {
      if (error instanceof RunEnded || this.#stopped.signal.aborted) return false;
      // One note that cannot be kept must not take the others along.
      this.#log.warn(`a note of ${this.#executionId} was not kept: ${said(error)}`);
    }
    return true;
  }
}
