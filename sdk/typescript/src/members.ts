/** Reads an answer's members; what is missing or of another type is an error that names it. */

/** An answer's JSON object. */
export class Members {
  readonly #members: ReadonlyMap<string, unknown>;

  /** Throws `TypeError` for what is no object. */
  constructor(value: unknown) {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new TypeError("not an object");
    this.#members = new Map(Object.entries(value));
  }

  /** Any JSON; null where it is absent. */
  any(name: string): unknown {
    return this.#members.get(name) ?? null;
  }

  /** A text that must be there. */
  text(name: string): string {
    return this.#typed(name, this.any(name), isText, "a text");
  }

  /** A text, or null. */
  maybeText(name: string): string | null {
    return this.#maybe(name, isText, "a text");
  }

  /** A number that must be there. */
  number(name: string): number {
    return this.#typed(name, this.any(name), isNumber, "a number");
  }

  /** A number, or null. */
  maybeNumber(name: string): number | null {
    return this.#maybe(name, isNumber, "a number");
  }

  /** True or false; false where it is absent. */
  flag(name: string): boolean {
    return this.#maybe(name, isFlag, "true or false") ?? false;
  }

  /** What `read` makes of it, or null. */
  maybe<T>(name: string, read: (value: unknown) => T): T | null {
    const value = this.any(name);
    return value === null ? null : read(value);
  }

  /** A list that must be there, each of it read. */
  list<T>(name: string, read: (value: unknown) => T): T[] {
    return this.#typed(name, this.any(name), isList, "a list").map(read);
  }

  /** A list, each of it read; empty where it is absent. */
  maybeList<T>(name: string, read: (value: unknown) => T): T[] {
    return this.any(name) === null ? [] : this.list(name, read);
  }

  #maybe<T>(name: string, is: (value: unknown) => value is T, what: string): T | null {
    const value = this.any(name);
    return value === null ? null : this.#typed(name, value, is, what);
  }

  #typed<T>(name: string, value: unknown, is: (value: unknown) => value is T, what: string): T {
    if (is(value)) return value;
    throw new TypeError(`${name} is not ${what}`);
  }
}

/** A text in a list. */
export function textIn(value: unknown): string {
  if (isText(value)) return value;
  throw new TypeError("not a text");
}

/** Whatever JSON it is, as it came. */
export function asItCame(value: unknown): unknown {
  return value;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isNumber(value: unknown): value is number {
  return typeof value === "number";
}

function isFlag(value: unknown): value is boolean {
  return typeof value === "boolean";
}

function isList(value: unknown): value is unknown[] {
  return Array.isArray(value);
}
