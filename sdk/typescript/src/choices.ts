/** What may be asked of a person, checked before it is sent: the rules of the control plane, and no clamping. */

import { invalid } from "./core.js";

/** What a short-lived question takes: text, a yes or a no, one of some options, or text masked while it is typed. */
export type FeedbackKind = "text" | "yes_no" | "multiple_choice" | "secret";

const KINDS: readonly string[] = ["text", "yes_no", "multiple_choice", "secret"] satisfies FeedbackKind[];
const LEAST_SECONDS = 5;
const MOST_SECONDS = 1800;
const YES_WORDS: ReadonlySet<string> = new Set(["yes", "y", "true", "approve"]);
const NO_WORDS: ReadonlySet<string> = new Set(["no", "n", "false", "reject"]);
const AN_ID = /^[A-Za-z0-9._~:-]{1,128}$/;
const PRINTABLE = /^(?:[^\p{C}\p{Z}]| )*$/u;
const LONGEST_MESSAGE = 4000;
const MOST_OPTIONS = 20;
const LONGEST_OPTION = 200;

/** What a person may choose, as it is asked: `options` go with multiple_choice, the labels with yes_no. */
export interface ChoicesAsked {
  kind?: string | undefined;
  options?: readonly string[] | undefined;
  yesLabel?: string | undefined;
  noLabel?: string | undefined;
}

/** What a person may choose, with its kind. */
export interface Choices extends ChoicesAsked {
  kind: FeedbackKind;
}

/**
 * What may be chosen; the kind is multiple_choice where options are given, else text, unless it is named.
 *
 * Throws `InvalidField` when nobody could choose between these.
 */
export function checkedChoices(asked: ChoicesAsked): Choices {
  const { options, yesLabel, noLabel } = asked;
  const kind = asked.kind ?? (options ? "multiple_choice" : "text");
  if (!isKind(kind)) throw invalid("kind", `must be one of ${KINDS.join(", ")}`);
  if (options !== undefined && !Array.isArray(options)) throw invalid("options", "must be a list of texts");
  if ((kind === "multiple_choice") !== (options !== undefined)) {
    throw invalid("options", "go with the kind multiple_choice, and with no other");
  }
  if (options) checkLabels("options", options, 1);
  checkYesNo(kind, yesLabel, noLabel);
  return { kind, options, yesLabel, noLabel };
}

/**
 * Refuse what cannot be asked. Throws `InvalidField` when the id, the message or the time breaks its rule; no time is
 * shortened or lengthened.
 */
export function checkQuestion(uniqueId: unknown, message: unknown, timeoutSeconds: unknown): void {
  if (typeof uniqueId !== "string" || !AN_ID.test(uniqueId)) {
    throw invalid("uniqueId", "must be 1 to 128 of A-Z a-z 0-9 . _ ~ : -");
  }
  if (!isTextUpTo(LONGEST_MESSAGE, message)) {
    throw invalid("message", `must be 1 to ${LONGEST_MESSAGE} characters, not only spaces`);
  }
  const number = typeof timeoutSeconds === "number" ? timeoutSeconds : Number.NaN;
  if (!(number >= LEAST_SECONDS && number <= MOST_SECONDS)) {
    const rule = `must be ${LEAST_SECONDS} to ${MOST_SECONDS}; what may wait longer is a question for an approval`;
    throw invalid("timeoutSeconds", rule);
  }
}

function isKind(kind: string): kind is FeedbackKind {
  return KINDS.includes(kind);
}

function checkYesNo(kind: FeedbackKind, yesLabel: string | undefined, noLabel: string | undefined): void {
  const labels = [yesLabel, noLabel].filter((label) => label !== undefined);
  if (labels.length > 0 && kind !== "yes_no") throw invalid("yesLabel", "goes with the kind yes_no, and with no other");
  checkLabels("yesLabel", labels, 0);
  if (says(yesLabel, NO_WORDS) || says(noLabel, YES_WORDS)) {
    throw invalid("yesLabel", "and noLabel must not say the opposite of what they mean");
  }
}

function says(label: string | undefined, words: ReadonlySet<string>): boolean {
  // Up and down again folds letters that lower case alone leaves apart.
  return label !== undefined && words.has(label.trim().toUpperCase().toLowerCase());
}

function checkLabels(field: string, labels: readonly unknown[], least: number): void {
  if (labels.length < least || labels.length > MOST_OPTIONS) {
    throw invalid(field, `must be ${least} to ${MOST_OPTIONS} options`);
  }
  const texts = labels.filter((label): label is string => isTextUpTo(LONGEST_OPTION, label) && PRINTABLE.test(label));
  if (texts.length < labels.length) {
    throw invalid(field, `must each be 1 to ${LONGEST_OPTION} printable characters, not only spaces`);
  }
  if (new Set(texts.map((text) => text.trim())).size < texts.length) {
    throw invalid(field, "must differ from each other");
  }
}

function isTextUpTo(most: number, value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "" && [...value].length <= most;
}
