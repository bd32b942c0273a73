// A result on its way through JSON: what is stored, and what comes back, the first time and every other.

import { StepTooLarge } from "../errors.js";

const LARGEST = 1024 * 1024;

/** A value that JSON does not have. */
export class NoJSON extends TypeError {
  override readonly name = "TypeError";
}

/**
 * The JSON of a value; undefined is null.
 *
 * @param what whose value it is, for the message.
 * @throws {TypeError} it is no JSON, or holds NaN or infinity, which JSON does not have.
 */
export function jsonText(what: string, value: unknown): string {
  try {
    return JSON.stringify(value ?? null, checked) ?? "null";
  } catch (error) {
    const why = error instanceof Error ? error.message.split("\n", 1)[0] : "it cannot be written";
    throw new NoJSON(`${what} is no JSON, so nothing was stored: ${why}`);
  }
}

/**
 * The JSON of a step's result.
 *
 * @param name of the step, for the message.
 * @throws {TypeError} it is no JSON.
 * @throws {StepTooLarge} it is over 1 MiB.
 */
export function stepText(name: string, result: unknown): string {
  const raw = jsonText(`the result of step ${JSON.stringify(name)}`, result);
  const size = new TextEncoder().encode(raw).length;
  if (size <= LARGEST) return raw;
  const told = `the result of step ${JSON.stringify(name)} is ${size} bytes of JSON, and ${LARGEST} is the most`;
  const details = { size_bytes: size, limit_bytes: LARGEST };
  throw new StepTooLarge(`${told}; store it elsewhere and return where it is`, { details });
}

function checked(_: string, member: unknown): unknown {
  if (typeof member === "number" && !Number.isFinite(member)) throw new TypeError("NaN and infinity are no JSON");
  if (typeof member === "function" || typeof member === "symbol") throw new TypeError(`a ${typeof member} is no JSON`);
  return member;
}
