// What is said of a question, a wait and a reasoner.

import type { Form, OnExpiry } from "../wire.js";
import type { AskKind } from "./forms.js";

/** How long an answer is waited for, and by whom. */
export interface WaitOptions {
  /** The run that asks; the current one when absent. */
  readonly executionId?: string | undefined;
  /** Milliseconds, any number. */
  readonly timeoutMs?: number | undefined;
  /** Gives the waiting up: the promise rejects with the signal's reason, and the question stays open. */
  readonly signal?: AbortSignal | undefined;
}

/** What pauses and asks have in common. */
export interface QuestionOptions extends WaitOptions {
  /**
   * 1-256 characters, unique in this execution. When absent it is made of the reasoner's name, the branch and a counter
   * in the order of the calls; give one when pauses start in an order that may change.
   */
  readonly approvalRequestId?: string | undefined;
  /** 1 s to 8760 h, fractions allowed; the control plane's default (72) when absent. */
  readonly expiresInHours?: number | undefined;
  /**
   * Milliseconds after which the server is asked to expire the question; the result is what the server says stands.
   * With `onExpiry: "cancel"` the run is cancelled then; to go on asking use "resume".
   */
  readonly timeoutMs?: number | undefined;
  /** "cancel" (when absent) ends the run at the deadline: its code still sees the result. "resume" lets it go on. */
  readonly onExpiry?: OnExpiry | undefined;
  /** More for the reviewer; at most 20,000 characters. */
  readonly description?: string | undefined;
}

/** What is said of a pause. */
export interface PauseOptions extends QuestionOptions {
  /** http(s) page where the person decides; the control plane's own when absent. */
  readonly approvalRequestUrl?: string | undefined;
  /** For the reviewer, at most 200 characters. */
  readonly title?: string | undefined;
  /** The exact action, any JSON up to 256 KiB. */
  readonly payload?: unknown;
  /** Name of the only webhook sender whose answer counts. */
  readonly decidedBy?: string | undefined;
  /** What the reviewer fills in; `result.values` is what was approved. With `editable` the payload may be changed. */
  readonly form?: Form | undefined;
}

/** What is said of a question with an answer. */
export interface AskOptions extends QuestionOptions {
  /** form where a schema is given, multiple_choice where options are, else text. */
  readonly kind?: AskKind | undefined;
  /** Of multiple_choice, 1-20 distinct texts of 1-200 characters. */
  readonly options?: readonly string[] | undefined;
  /** Of form: the JSON Schema of an object. The control plane holds the values against it; this package does not. */
  readonly schema?: Readonly<Record<string, unknown>> | undefined;
  /** What the yes of yes_no is called. */
  readonly yesLabel?: string | undefined;
  /** What its no is called. */
  readonly noLabel?: string | undefined;
}

/** What is said of a wait for a question that was asked before. */
export interface ResumeOptions extends WaitOptions {
  /** That it was asked with; the values are held against it as those of a pause. */
  readonly form?: Form | undefined;
}

/** What is said of a short-lived question. */
export interface FeedbackOptions {
  /** 1-128 of `A-Z a-z 0-9 . _ ~ : -`, new for each question. */
  readonly uniqueId: string;
  /** 5-1800; 300 when absent. Nobody's answer is waited for longer. */
  readonly timeoutSeconds?: number | undefined;
  /** Of multiple_choice, 1-20 distinct texts of 1-200 characters. */
  readonly options?: readonly string[] | undefined;
  /** secret is masked while it is typed; multiple_choice where options are given, else text. */
  readonly kind?: "text" | "yes_no" | "multiple_choice" | "secret" | undefined;
  /** What the yes of yes_no is called. */
  readonly yesLabel?: string | undefined;
  /** What its no is called. */
  readonly noLabel?: string | undefined;
  /** Gives it up and withdraws the question; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}
