/** The words that mean a decision. A word that is not in the table is refused: it never approves. */

import { UnreadableBody } from "../unreadable.js";

/** The four answers that an approval can get. */
export type Decision = "approved" | "rejected" | "request_changes" | "expired";

const WORDS: ReadonlyMap<string, Decision> = new Map([
  ["approved", "approved"],
  ["rejected", "rejected"],
  ["request_changes", "request_changes"],
  ["expired", "expired"],
  ["approve", "approved"],
  ["continue", "approved"],
  ["confirm", "approved"],
  ["reject", "rejected"],
  ["deny", "rejected"],
  ["abort", "rejected"],
  ["cancel", "rejected"],
]);
// The Kelvin sign becomes an ordinary k in lower case, so ASCII is asked for before.
const ASCII = /^[\u0000-\u007f]*$/;

/**
 * The decision that a word means: ASCII letters in any case, ASCII space around them ignored.
 *
 * @param word as received, of any type.
 * @throws {UnreadableBody} `invalid_decision`: the word is unknown or no string at all.
 */
export function decisionWord(word: unknown): Decision {
  const decision = knownWord(word);
  if (decision !== undefined) return decision;
  throw new UnreadableBody(
    "The decision is none of the known words; send approved, rejected, request_changes or expired.",
    "invalid_decision",
  );
}

/** As `decisionWord`, with undefined for anything that is no decision. */
export function knownWord(word: unknown): Decision | undefined {
  if (typeof word !== "string" || !ASCII.test(word)) return undefined;
  // Of ASCII, `trim` takes just space, tab, line feed, carriage return, vertical tab and form feed.
  return WORDS.get(word.trim().toLowerCase());
}
