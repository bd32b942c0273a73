// Ids and secrets that nobody guesses.

import { base64 } from "../bytes.js";

const SECRET_BYTES = 24;

/** A new id that begins with a word. */
export function newId(word: string): string {
  return `${word}_${crypto.randomUUID().replaceAll("-", "")}`;
}

/** A new secret that signs the callbacks of one question. */
export function newSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(SECRET_BYTES));
  return base64(bytes).replaceAll("+", "-").replaceAll("/", "_");
}
