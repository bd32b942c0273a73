/** The control plane's refusals: one class a meaning, under the class of its status. */

import { HoldshortError, named } from "./errorBase.js";

/** The control plane answered with an error; `code` is stable, `message` says what to do. */
export class Refused extends HoldshortError {
  declare protected readonly isRefused: true;
  static override readonly code: string = "refused";
  static override readonly says: string =
    "The control plane answered with an error; `code` is stable, `message` says what to do.";
  static {
    named(this, "Refused");
  }
}

/** The control plane could not take the request as it is; the message says what is wrong with it. */
export class BadRequest extends Refused {
  declare protected readonly isBadRequest: true;
  static override readonly code: string = "bad_request";
  static override readonly says: string =
    "The control plane could not take the request as it is; the message says what is wrong with it.";
  static {
    named(this, "BadRequest");
  }
}

/** A field breaks a rule; `details.errors` lists each field with its rule. Correct it and call again. */
export class InvalidField extends BadRequest {
  declare protected readonly isInvalidField: true;
  static override readonly code: string = "invalid_field";
  static override readonly says: string =
    "A field breaks a rule; `details.errors` lists each field with its rule. Correct it and call again.";
  static {
    named(this, "InvalidField");
  }
}

/** A step's result is over 1 MiB of JSON; store it elsewhere and return where it is. */
export class StepTooLarge extends BadRequest {
  declare protected readonly isStepTooLarge: true;
  static override readonly code: string = "step_too_large";
  static override readonly says: string =
    "A step's result is over 1 MiB of JSON; store it elsewhere and return where it is.";
  static {
    named(this, "StepTooLarge");
  }
}

/** The key, the node or the sender may not do this; use a key with the scope the message names. */
export class NotAuthorised extends Refused {
  declare protected readonly isNotAuthorised: true;
  static override readonly code: string = "not_authorised";
  static override readonly says: string =
    "The key, the node or the sender may not do this; use a key with the scope the message names.";
  static {
    named(this, "NotAuthorised");
  }
}

/**
 * No API key was sent, or it is wrong, past its time or revoked. Nothing was asked and nothing was done. The key is
 * `apiKey` or HOLDSHORT_API_KEY; `holdshort keys create` makes one and `holdshort keys rotate` gives one a new
 * secret.
 */
export class KeyRefused extends NotAuthorised {
  declare protected readonly isKeyRefused: true;
  static override readonly code: string = "invalid_key";
  static override readonly says: string =
    "No API key was sent, or it is wrong, past its time or revoked; give a good one and start the program again.";
  static override readonly advice: string =
    "This program sends apiKey or HOLDSHORT_API_KEY; `holdshort keys create` makes a key.";
  static {
    named(this, "KeyRefused");
  }
}

/** The key is for something else: agents need one of scope agent, people who decide one of scope review. */
export class WrongScope extends NotAuthorised {
  declare protected readonly isWrongScope: true;
  static override readonly code: string = "not_allowed";
  static override readonly says: string =
    "The key is for something else: agents need one of scope agent, people who decide one of scope review.";
  static override readonly advice: string = "This program sends apiKey or HOLDSHORT_API_KEY.";
  static {
    named(this, "WrongScope");
  }
}

/** The node belongs to another key; use that one, another nodeId, or have an admin move the node to this one. */
export class NodeOwned extends NotAuthorised {
  declare protected readonly isNodeOwned: true;
  static override readonly code: string = "node_owned";
  static override readonly says: string =
    "The node belongs to another key; use that one, another nodeId, or have an admin move the node to this one.";
  static override readonly advice: string = "`holdshort nodes move NODE --to KEY_ID` does that.";
  static {
    named(this, "NodeOwned");
  }
}

/** Nothing has this id; check the id, and that HOLDSHORT_URL is the control plane it was made on. */
export class NotFound extends Refused {
  declare protected readonly isNotFound: true;
  static override readonly code: string = "not_found";
  static override readonly says: string =
    "Nothing has this id; check the id, and that HOLDSHORT_URL is the control plane it was made on.";
  static {
    named(this, "NotFound");
  }
}

/** What stands does not allow this; read it again (`details` holds what stands) and decide anew. */
export class Conflict extends Refused {
  declare protected readonly isConflict: true;
  static override readonly code: string = "conflict";
  static override readonly says: string =
    "What stands does not allow this; read it again (`details` holds what stands) and decide anew.";
  static {
    named(this, "Conflict");
  }
}

/**
 * The execution is over, so nothing new can be asked. This is never a decision. It comes when a new question is
 * opened after a rejection, an expiry with onExpiry "cancel", a cancellation or the run's end. To go on asking after
 * a deadline, ask with onExpiry "resume".
 */
export class ExecutionFinished extends Conflict {
  declare protected readonly isExecutionFinished: true;
  static override readonly code: string = "invalid_state";
  static override readonly says: string =
    "The execution is over, so nothing new can be asked. This is never a decision.";
  static {
    named(this, "ExecutionFinished");
  }
}

/** The round before this one is still pending or ended for good; ask under another approvalRequestId. */
export class RoundNotOpen extends Conflict {
  declare protected readonly isRoundNotOpen: true;
  static override readonly code: string = "round_not_open";
  static override readonly says: string =
    "The round before this one is still pending or ended for good; ask under another approvalRequestId.";
  static {
    named(this, "RoundNotOpen");
  }
}

/**
 * The id was asked with another payload, form or onExpiry; an answer never covers an action nobody saw. Use a new
 * id.
 */
export class RequestConflict extends Conflict {
  declare protected readonly isRequestConflict: true;
  static override readonly code: string = "approval_request_conflict";
  static override readonly says: string =
    "The id was asked with another payload, form or onExpiry; an answer never covers an action nobody saw. Use a " +
    "new id.";
  static {
    named(this, "RequestConflict");
  }
}

/** Several approvals could be meant; name the executionId. `details.approvals` lists them. */
export class AmbiguousRequestId extends Conflict {
  declare protected readonly isAmbiguousRequestId: true;
  static override readonly code: string = "ambiguous_request_id";
  static override readonly says: string =
    "Several approvals could be meant; name the executionId. `details.approvals` lists them.";
  static {
    named(this, "AmbiguousRequestId");
  }
}

/** Another round or payload stands than the one decided on; read the approval again before deciding. */
export class ApprovalChanged extends Conflict {
  declare protected readonly isApprovalChanged: true;
  static override readonly code: string = "approval_changed";
  static override readonly says: string =
    "Another round or payload stands than the one decided on; read the approval again before deciding.";
  static {
    named(this, "ApprovalChanged");
  }
}

/** Another decision was first and stands; `details` holds it. Nothing was changed. */
export class AlreadyDecided extends Conflict {
  declare protected readonly isAlreadyDecided: true;
  static override readonly code: string = "already_decided";
  static override readonly says: string =
    "Another decision was first and stands; `details` holds it. Nothing was changed.";
  static {
    named(this, "AlreadyDecided");
  }
}

/** Another node owns an execution with this id; choose another executionId. */
export class ExecutionExists extends Conflict {
  declare protected readonly isExecutionExists: true;
  static override readonly code: string = "execution_exists";
  static override readonly says: string = "Another node owns an execution with this id; choose another executionId.";
  static {
    named(this, "ExecutionExists");
  }
}

/** The idempotency key was used for another reasoner or another input; take a new key for a new call. */
export class IdempotencyConflict extends Conflict {
  declare protected readonly isIdempotencyConflict: true;
  static override readonly code: string = "idempotency_conflict";
  static override readonly says: string =
    "The idempotency key was used for another reasoner or another input; take a new key for a new call.";
  static {
    named(this, "IdempotencyConflict");
  }
}

/** The control plane or its database is away, or asks for fewer calls; retried already, so try again later. */
export class Unavailable extends Refused {
  declare protected readonly isUnavailable: true;
  static override readonly code: string = "unavailable";
  static override readonly says: string =
    "The control plane or its database is away, or asks for fewer calls; retried already, so try again later.";
  static {
    named(this, "Unavailable");
  }
}
