// Ends that only an agent knows, and an error as text that can be stored.

import { named } from "../errorBase.js";
import { RunEnded } from "../errors.js";

const LONGEST_ERROR = 65_536;
const LONE_HALVES = /\p{Surrogate}/gu;

/** The run worked for longer than its reasoner may; time spent waiting for people does not count. */
export class ExecutionTimedOut extends RunEnded {
  declare protected readonly isExecutionTimedOut: true;
  static override readonly code: string = "execution_timeout";
  static override readonly says: string = "The run worked for longer than it may; let it end.";
  static {
    named(this, "ExecutionTimedOut");
  }
}

/** What was thrown as text: a run must be able to say why it failed, whatever its words are. */
export function said(error: unknown): string {
  return storable(error instanceof Error ? `${error.name}: ${error.message}` : `Error: ${texted(error)}`);
}

/** What was thrown, with its stack, for the log. */
export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? said(error)) : said(error);
}

function texted(thrown: unknown): string {
  try {
    return String(thrown);
  } catch {
    return typeof thrown;
  }
}

function storable(text: string): string {
  return text.slice(0, LONGEST_ERROR).replace(LONE_HALVES, "?").replaceAll("\0", "?");
}
