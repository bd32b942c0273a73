/** The routes of short-lived questions, one function each: arguments in, a Call out. */

import { apiPath, jsonOf, type Call } from "./core.js";
import { Members, textIn } from "./members.js";

/** The answer to a short-lived question's asking: it is open until `expiresAt`. */
export interface FeedbackAsked {
  uniqueId: string;
  createdAt: string | null;
  expiresAt: string | null;
}

/** A sealed answer, in base64: `enc` the seal's public key, `ct` the answer that only its asker can open. */
export interface Sealed {
  enc: string;
  ct: string;
}

/** How a short-lived question stands: `outcome` is answered, with `sealed`, or pending. */
export interface FeedbackAnswer {
  outcome: string;
  sealed: Sealed | null;
}

/** A short-lived question that waits for a person; `context` says how long it still does. */
export interface FeedbackQuestion {
  uniqueId: string;
  messageForUser: string;
  /** text, yes_no, multiple_choice or secret. */
  kind: string;
  options: string[] | null;
  yesLabel: string | null;
  noLabel: string | null;
  /** True where it takes text. */
  allowFeedback: boolean;
  context: string | null;
  sessionId: string | null;
  createdAt: string | null;
  expiresAt: string | null;
}

/** The short-lived questions that wait for a person, oldest first; never an answer. */
export interface FeedbackPage {
  requests: FeedbackQuestion[];
}

/** The answer to an answer: it was taken, now or under the same submission id before. */
export interface Submitted {
  uniqueId: string;
  status: string;
  message: string;
}

/** How a short-lived question ended that was let go of: answered, expired or cancelled. */
export interface FeedbackEnd {
  uniqueId: string;
  outcome: string;
}

/** A short-lived question, as it is sent. */
export interface FeedbackWords {
  uniqueId: string;
  messageForUser: string;
  /** X25519, 32 bytes in base64; whoever has the private key can open the answer. */
  publicKey: string;
  timeoutSeconds: number;
  kind?: string | undefined;
  options?: readonly string[] | undefined;
  yesLabel?: string | undefined;
  noLabel?: string | undefined;
  executionId?: string | undefined;
}

/** Ask a short-lived question whose answer is sealed to a key; the same again, with the same key, joins it. */
export function askFeedback(words: FeedbackWords): Call<FeedbackAsked> {
  const body = jsonOf({
    unique_id: words.uniqueId,
    message_for_user: words.messageForUser,
    kind: words.kind,
    options: words.options,
    yes_label: words.yesLabel,
    no_label: words.noLabel,
    timeout_seconds: words.timeoutSeconds,
    execution_id: words.executionId,
    public_key: words.publicKey,
  });
  return { method: "POST", path: apiPath("human-feedback"), body, read: readAsked };
}

/** The sealed answer to a question of this API key, or `pending` when `waitSeconds` (0-60) have passed. */
export function feedbackAnswer(uniqueId: string, waitSeconds = 0): Call<FeedbackAnswer> {
  return {
    method: "GET",
    path: apiPath("human-feedback", uniqueId, "answer"),
    query: { wait: waitSeconds.toString() },
    holdMs: 1000 * waitSeconds,
    read: readAnswer,
  };
}

/** Acknowledge an answer that was read, which lets go of it, or withdraw a question that is open. */
export function endFeedback(uniqueId: string): Call<FeedbackEnd> {
  return { method: "DELETE", path: apiPath("human-feedback", uniqueId), read: readEnd };
}

/**
 * Answer a short-lived question as a person.
 *
 * @param uniqueId of the question
 * @param response the answer, at most 16 KiB: text, one of the options, or a yes or a no
 * @param submissionId the same again is the same answer, so that it can be sent again when its reply was lost
 */
export function submitFeedback(uniqueId: string, response: string, submissionId?: string): Call<Submitted> {
  const body = jsonOf({ unique_id: uniqueId, response, submission_id: submissionId });
  return { method: "POST", path: "/api/human-feedback/submit", body, read: readSubmitted };
}

/** The short-lived questions that wait for a person, oldest first. */
export function pendingFeedback(): Call<FeedbackPage> {
  return {
    method: "GET",
    path: "/api/human-feedback/pending",
    read: (value) => ({ requests: new Members(value).list("requests", readQuestion) }),
  };
}

function readAsked(value: unknown): FeedbackAsked {
  const from = new Members(value);
  return {
    uniqueId: from.text("unique_id"),
    createdAt: from.maybeText("created_at"),
    expiresAt: from.maybeText("expires_at"),
  };
}

function readAnswer(value: unknown): FeedbackAnswer {
  const from = new Members(value);
  return { outcome: from.text("outcome"), sealed: from.maybe("sealed", readSealed) };
}

function readSealed(value: unknown): Sealed {
  const from = new Members(value);
  return { enc: from.text("enc"), ct: from.text("ct") };
}

function readEnd(value: unknown): FeedbackEnd {
  const from = new Members(value);
  return { uniqueId: from.text("unique_id"), outcome: from.text("outcome") };
}

function readSubmitted(value: unknown): Submitted {
  const from = new Members(value);
  return {
    uniqueId: from.text("unique_id"),
    status: from.text("status"),
    message: from.maybeText("message") ?? "",
  };
}

function readQuestion(value: unknown): FeedbackQuestion {
  const from = new Members(value);
  return {
    uniqueId: from.text("unique_id"),
    messageForUser: from.text("message_for_user"),
    kind: from.maybeText("kind") ?? "text",
    options: from.maybe("options", () => from.list("options", textIn)),
    yesLabel: from.maybeText("yes_label"),
    noLabel: from.maybeText("no_label"),
    allowFeedback: from.flag("allow_feedback"),
    context: from.maybeText("context"),
    sessionId: from.maybeText("session_id"),
    createdAt: from.maybeText("created_at"),
    expiresAt: from.maybeText("expires_at"),
  };
}
