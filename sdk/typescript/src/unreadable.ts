/** What is thrown for a body that cannot be read in one way only. */

import { HoldshortError, named } from "./errorBase.js";

/** Why a body cannot be read, by the control plane's own codes. */
export type UnreadableCode =
  | "invalid_body"
  | "request_id_missing"
  | "decision_missing"
  | "invalid_decision"
  | "decision_conflict";

/** One member that is to blame, and the rule that it breaks. */
export interface Fault {
  readonly field: string;
  readonly rule: string;
}

/**
 * A body is no strict JSON, or no decision can be read from it. It decides nothing; `code` says why:
 *
 * - `invalid_body`: no strict JSON object, a member of the wrong type, or two ids or rounds that disagree;
 *   `details.errors` lists the member and its rule where one is to blame.
 * - `request_id_missing`, `decision_missing`: it names no approval, or holds no decision.
 * - `invalid_decision`: the decision is none of the known words.
 * - `decision_conflict`: two decisions that disagree, or one in an event that decides nothing.
 */
export class UnreadableBody extends HoldshortError {
  declare protected readonly isUnreadableBody: true;
  static override readonly code: string = "invalid_body";
  static override readonly says: string = "The body is not strict JSON; correct it and send it again.";
  static {
    named(this, "UnreadableBody");
  }

  /**
   * @param message what is wrong; it never repeats what was sent
   * @param code why it cannot be read
   * @param fault the member that is to blame
   */
  constructor(message: string, code: UnreadableCode = "invalid_body", fault?: Fault) {
    super(message, { code, details: fault === undefined ? {} : { errors: [fault] } });
  }
}
