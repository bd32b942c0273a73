/** The ways in which a short-lived question ends without an answer, and an answer that does not fit what was asked. */

import { named } from "./errorBase.js";
import { Conflict, InvalidField, Refused } from "./refusedErrors.js";

/** A short-lived question is over, and there is no answer to be had. This is never an approval and never a no. */
export class FeedbackEnded extends Refused {
  declare protected readonly isFeedbackEnded: true;
  static override readonly code: string = "request_ended";
  static override readonly says: string =
    "A short-lived question is over, and there is no answer to be had. This is never an approval and never a no.";
  static {
    named(this, "FeedbackEnded");
  }
}

/**
 * The question's time passed, and nobody answered in it. This is never an approval: do not do what was asked about.
 * Ask under a new uniqueId, with a longer timeoutSeconds or when somebody is there; what may wait for hours is a
 * question for an approval.
 */
export class FeedbackExpired extends FeedbackEnded {
  declare protected readonly isFeedbackExpired: true;
  static override readonly code: string = "request_expired";
  static override readonly says: string =
    "The question's time passed, and nobody answered in it. This is never an approval; ask anew if it matters.";
  static {
    named(this, "FeedbackExpired");
  }
}

/**
 * The question was withdrawn, or nobody waited for its answer for 15 s: another call withdrew it, or the control
 * plane was out of this program's reach for longer. This is never an approval. Ask anew under a new uniqueId.
 */
export class FeedbackCancelled extends FeedbackEnded {
  declare protected readonly isFeedbackCancelled: true;
  static override readonly code: string = "request_cancelled";
  static override readonly says: string =
    "The question was withdrawn, or nobody waited for its answer for 15 s. Ask anew under a new uniqueId.";
  static {
    named(this, "FeedbackCancelled");
  }
}

/**
 * The answer was read once and is gone, as answers are. It comes when the reply that held the answer was lost on its
 * way, and 30 s passed until it was asked for again. Ask anew under a new uniqueId.
 */
export class AnswerTaken extends FeedbackEnded {
  declare protected readonly isAnswerTaken: true;
  static override readonly code: string = "answer_taken";
  static override readonly says: string =
    "The answer was read once and is gone, as answers are. Ask anew under a new uniqueId.";
  static {
    named(this, "AnswerTaken");
  }
}

/** Another call asks under this uniqueId now, and its answer goes to that one alone. Use a uniqueId of your own. */
export class DuplicateRequest extends Conflict {
  declare protected readonly isDuplicateRequest: true;
  static override readonly code: string = "duplicate_request";
  static override readonly says: string =
    "Another call asks under this uniqueId now, and its answer goes to that one alone. Use a uniqueId of your own.";
  static {
    named(this, "DuplicateRequest");
  }
}

/**
 * A question under this uniqueId ended within the last hour; its answer is nowhere to be had. A run that is started
 * again asks again, so its id must be new each time: `uniqueId("otp")` makes one.
 */
export class RequestIdUsed extends Conflict {
  declare protected readonly isRequestIdUsed: true;
  static override readonly code: string = "request_id_used";
  static override readonly says: string =
    "A question under this uniqueId ended within the last hour; its answer is nowhere to be had. Use a new one.";
  static {
    named(this, "RequestIdUsed");
  }
}

/** Another answer to the short-lived question was first and stands. Nothing was changed. */
export class AlreadyAnswered extends Conflict {
  declare protected readonly isAlreadyAnswered: true;
  static override readonly code: string = "already_answered";
  static override readonly says: string =
    "Another answer to the short-lived question was first and stands. Nothing was changed.";
  static {
    named(this, "AlreadyAnswered");
  }
}

/** What a person gave is no answer to what was asked; the question stays open. Correct it and send it again. */
export class InvalidAnswer extends InvalidField {
  declare protected readonly isInvalidAnswer: true;
  static override readonly code: string = "invalid_answer";
  static override readonly says: string =
    "What a person gave is no answer to what was asked; the question stays open. Correct it and send it again.";
  static {
    named(this, "InvalidAnswer");
  }
}
