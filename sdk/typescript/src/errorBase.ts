/** What every error of this package is made of. */

/** What is known of an error beside its message. */
export interface ErrorFacts {
  /** Stable code; the class's own when absent. */
  code?: string | null;
  /** HTTP status of the answer; absent where there was none. */
  status?: number | null;
  /** The answer's `X-Request-ID`, which finds it in the server's log. */
  requestId?: string | null;
  /** What the answer says beyond its message. */
  details?: Readonly<Record<string, unknown>>;
}

/** Every error of this package: a name, a stable code, and a message that says what to do. */
export abstract class ToldError extends Error {
  /** Code of errors of this class that no server named. */
  static readonly code: string = "error";
  /** The message of an error that is thrown without one. */
  static readonly says: string = "";
  /** What the control plane's message cannot know: how this program is told otherwise. */
  static readonly advice: string = "";

  /** Stable code: programs should look at this or at the class. */
  readonly code: string;
  /** HTTP status of the control plane's answer; null where there was none. */
  readonly status: number | null;
  /** Finds the request in the control plane's log. */
  readonly requestId: string | null;
  /** The members of the answer beyond its message, as they came. */
  readonly details: Readonly<Record<string, unknown>>;

  /**
   * @param message what happened and what to do; the class's own sentence when absent
   * @param facts what is known beside it
   */
  constructor(message?: string | null, facts: ErrorFacts = {}) {
    super(message || new.target.says);
    this.code = facts.code || new.target.code;
    this.status = facts.status ?? null;
    this.requestId = facts.requestId ?? null;
    this.details = facts.details ?? {};
  }
}

/** Base of every error of this package but the ends of a run. */
export class HoldshortError extends ToldError {
  declare protected readonly isHoldshortError: true;
  static {
    named(this, "HoldshortError");
  }
}

/**
 * Name a class on its prototype, so that the name outlives minifiers and stands in the stack.
 *
 * The protected member that each class declares exists for the compiler alone: without it, classes of equal shape
 * would be one type, and `instanceof` would narrow to nothing.
 */
export function named(kind: { readonly prototype: ToldError }, name: string): void {
  Object.defineProperty(kind.prototype, "name", { value: name, configurable: true, writable: true });
}

/** An error's own name and then what it is a case of, nearest first: `["NotFound", "Refused", "HoldshortError"]`. */
export function kindsOf(error: ToldError): string[] {
  const kinds: string[] = [];
  let kind: unknown = Object.getPrototypeOf(error);
  while (kind instanceof ToldError) {
    kinds.push(kind.name);
    kind = Object.getPrototypeOf(kind);
  }
  return kinds;
}
