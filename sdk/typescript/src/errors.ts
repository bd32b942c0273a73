/**
 * Every way the SDK says no.
 *
 * ```text
 * HoldshortError
 * ├── ConnectionFailed            the control plane was not reached for as long as the caller would wait
 * ├── WaitTimeout                 the caller's own time to wait is up; the approval stays pending
 * ├── NoExecution                 a pause, step or question outside a run
 * ├── CallbackUnknown             callback "push" without an address to push to
 * ├── StepsSideBySide             steps of one name in progress at once in one branch
 * ├── InvalidSignature            a webhook or callback whose signature does not hold
 * │   └── StaleSignature          it holds, but its time is too far from now
 * ├── UnreadableAnswer            a short-lived question's answer was not sealed to it
 * ├── ValuesInvalid               an approval's values do not fit the form that was asked with
 * └── Refused                     the control plane answered with an error
 *     ├── BadRequest              400, 413, 415
 *     │   ├── InvalidField        422
 *     │   │   └── InvalidAnswer   invalid_answer: what a person gave is no answer to what was asked
 *     │   └── StepTooLarge        step_too_large: a step's result is over 1 MiB
 *     ├── NotAuthorised           401, 403
 *     │   ├── KeyRefused          not_authenticated, invalid_key: none was sent, or it is wrong, ended or revoked
 *     │   ├── WrongScope          not_allowed: the key is for something else
 *     │   └── NodeOwned           node_owned: the node is another key's
 *     ├── NotFound                404
 *     ├── Conflict                409
 *     │   ├── ExecutionFinished   invalid_state: nothing new can be asked
 *     │   ├── RoundNotOpen        round_not_open
 *     │   ├── RequestConflict     approval_request_conflict
 *     │   ├── AmbiguousRequestId  ambiguous_request_id
 *     │   ├── ApprovalChanged     approval_changed
 *     │   ├── AlreadyDecided      already_decided
 *     │   ├── ExecutionExists     execution_exists
 *     │   ├── IdempotencyConflict idempotency_conflict
 *     │   ├── DuplicateRequest    duplicate_request: the id of a short-lived question that is open
 *     │   ├── RequestIdUsed       request_id_used: the id of one that has ended
 *     │   └── AlreadyAnswered     already_answered
 *     ├── FeedbackEnded           410: a short-lived question is over
 *     │   ├── FeedbackExpired     request_expired
 *     │   ├── FeedbackCancelled   request_cancelled
 *     │   └── AnswerTaken         answer_taken
 *     └── Unavailable             429, 5xx, for longer than the caller would wait
 *
 * RunEnded (no HoldshortError: let it pass)
 * ├── ExecutionCancelled          an operator cancelled this run
 * ├── StaleInstance               another instance took this run over
 * ├── StepMismatch                the code does other steps than this run did before; the run has failed
 * └── HandedBack                  the process stops; the run waits without it
 *     └── AccessLost              the key is refused since the run began to wait
 * ```
 */

import { HoldshortError, named } from "./errorBase.js";

export { HoldshortError, ToldError, type ErrorFacts } from "./errorBase.js";
export * from "./feedbackErrors.js";
export * from "./refusedErrors.js";
export * from "./runEnds.js";

/** The control plane could not be reached in the time the caller gave; check HOLDSHORT_URL and that it runs. */
export class ConnectionFailed extends HoldshortError {
  declare protected readonly isConnectionFailed: true;
  static override readonly code: string = "connection_failed";
  static override readonly says: string =
    "The control plane could not be reached in the time the caller gave; check HOLDSHORT_URL and that it runs.";
  static {
    named(this, "ConnectionFailed");
  }
}

/** The approval is still pending and stays so; wait again to go on waiting. */
export class WaitTimeout extends HoldshortError {
  declare protected readonly isWaitTimeout: true;
  static override readonly code: string = "wait_timeout";
  static override readonly says: string = "The approval is still pending and stays so; wait again to go on waiting.";
  static {
    named(this, "WaitTimeout");
  }
}

/** There is no run here; call this inside a reasoner or agent.execution(), or name an executionId. */
export class NoExecution extends HoldshortError {
  declare protected readonly isNoExecution: true;
  static override readonly code: string = "no_execution";
  static override readonly says: string =
    "There is no run here; call this inside a reasoner or agent.execution(), or name an executionId.";
  static {
    named(this, "NoExecution");
  }
}

/** callback "push" needs an address: pass callbackURL, set HOLDSHORT_CALLBACK_URL, or use "auto" or "pull". */
export class CallbackUnknown extends HoldshortError {
  declare protected readonly isCallbackUnknown: true;
  static override readonly code: string = "callback_unknown";
  static override readonly says: string =
    "callback \"push\" needs an address: pass callbackURL, set HOLDSHORT_CALLBACK_URL, or use \"auto\" or \"pull\".";
  static {
    named(this, "CallbackUnknown");
  }
}

/**
 * A step of this name is in progress in this branch, and a restarted run could take one for the other; put what
 * tells them apart into the name, or use a branch.
 */
export class StepsSideBySide extends HoldshortError {
  declare protected readonly isStepsSideBySide: true;
  static override readonly code: string = "steps_side_by_side";
  static override readonly says: string =
    "A step of this name is in progress in this branch, and a restarted run could take one for the other; put " +
    "what tells them apart into the name, or use a branch.";
  static {
    named(this, "StepsSideBySide");
  }
}

/** No signature matches the body as received; verify the raw bytes, with the secret the sender signs with. */
export class InvalidSignature extends HoldshortError {
  declare protected readonly isInvalidSignature: true;
  static override readonly code: string = "invalid_signature";
  static override readonly says: string =
    "No signature matches the body as received; verify the raw bytes, with the secret the sender signs with.";
  static {
    named(this, "InvalidSignature");
  }
}

/** The signature holds but its time is more than 300 s from now; check both clocks, or refuse it as a replay. */
export class StaleSignature extends InvalidSignature {
  declare protected readonly isStaleSignature: true;
  static override readonly code: string = "stale_signature";
  static override readonly says: string =
    "The signature holds but its time is more than 300 s from now; check both clocks, or refuse it as a replay.";
  static {
    named(this, "StaleSignature");
  }
}

/**
 * The answer was not sealed to this question, so it cannot be opened. Nothing was answered: ask anew under a new
 * uniqueId. When it happens again, something between this program and the control plane changes what they say to
 * each other.
 */
export class UnreadableAnswer extends HoldshortError {
  declare protected readonly isUnreadableAnswer: true;
  static override readonly code: string = "unreadable_answer";
  static override readonly says: string =
    "The answer was not sealed to this question, so it cannot be opened. Nothing was answered: ask anew.";
  static {
    named(this, "UnreadableAnswer");
  }
}

/**
 * An approval's values do not fit the form that was asked with, so they are not handed over. The decision stands,
 * under a form or values that are not those this code asks for: perhaps the code was changed while the question was
 * open, or somebody decided without values. `details` holds the decision; treat it as no answer, and ask under
 * another approvalRequestId.
 */
export class ValuesInvalid extends HoldshortError {
  declare protected readonly isValuesInvalid: true;
  static override readonly code: string = "values_invalid";
  static override readonly says: string =
    "An approval's values do not fit the form that was asked with, so they are not handed over. Ask anew.";
  static {
    named(this, "ValuesInvalid");
  }
}
