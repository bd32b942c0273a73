/** Looking up members of a body that was read: null counts as absent, and spellings of one thing must agree. */

import type { Node } from "../strictJson.js";
import { UnreadableBody } from "../unreadable.js";

/** The members of one object of the body. */
export type Members = ReadonlyMap<string, Node>;

/** A value with the name that it stands under. */
export type Found = readonly [name: string, value: Node];

const NONE: Members = new Map();
const MAX_ROUND = 2 ** 31 - 1;
const WHOLE = /^-?[0-9]+$/;

/** The member of this name; undefined when it is absent or null. */
export function member(place: Members, name: string): Node | undefined {
  const value = place.get(name);
  return value?.kind === "null" ? undefined : value;
}

/** The members of the object of this name; none when it is no object. */
export function inside(place: Members, name: string): Members {
  const value = place.get(name);
  return value?.kind === "object" ? value.members : NONE;
}

/** Whatever stands in these places under these names. */
export function found(places: readonly Members[], names: readonly string[]): Found[] {
  return places.flatMap((place) =>
    names.flatMap((name): Found[] => {
      const value = member(place, name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** The one text that all spellings agree on; null when none of them is there. */
export function agreed(field: string, values: readonly Found[]): string | null {
  return one(field, values.map(([name, value]) => textOf(name, value)));
}

/** The round that is named; null when none is. */
export function roundOf(places: readonly Members[]): number | null {
  return one("round", found(places, ["round"]).map(([, value]) => round(value)));
}

/** The text of a string, or the refusal of what is none. */
export function textOf(name: string, value: Node): string {
  return value.kind === "string" ? value.text : refused(name, "must be a string");
}

/** Refuses a body whose member breaks a rule. */
export function refused(field: string, rule: string): never {
  throw new UnreadableBody(`${field} ${rule}.`, "invalid_body", { field, rule });
}

function one<T>(field: string, values: readonly T[]): T | null {
  const [first, ...others] = new Set(values);
  if (others.length > 0) refused(field, "is given twice with different values");
  return first ?? null;
}

function round(value: Node): number {
  const number = value.kind === "number" && WHOLE.test(value.written) ? Number(value.written) : 0;
  return number >= 1 && number <= MAX_ROUND ? number : refused("round", "must be an integer of at least 1");
}
