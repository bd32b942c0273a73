/**
 * Strict JSON over bytes: either every parser reads the same thing in it, or it is refused.
 *
 * RFC 8259 leaves open what a name given twice, half a surrogate pair or a number beyond a double means, and parsers
 * differ. Here all of these are refused, so what was signed, shown and stored is what is read. `JSON.parse` would
 * take the later of two names.
 */

import { fromUtf8 } from "./bytes.js";
import { StringReader } from "./strictStrings.js";
import { UnreadableBody } from "./unreadable.js";

/** How many objects and arrays may stand inside each other. */
export const MAX_DEPTH = 64;

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;
const WORD = /true|false|null/y;
const PLAIN_NAME = /^[A-Za-z0-9_]{1,64}$/;

/** One value as it was read; `written` is its text exactly as received, without the space around it. */
export type Node = { readonly written: string } & (
  | { readonly kind: "object"; readonly members: ReadonlyMap<string, Node> }
  | { readonly kind: "array"; readonly items: readonly Node[] }
  | { readonly kind: "string"; readonly text: string }
  | { readonly kind: "number" | "boolean" | "null" }
);

type Unwritten<T> = T extends unknown ? Omit<T, "written"> : never;

/**
 * The value in `raw`, with every number as it was written.
 *
 * @param raw the bytes as received: UTF-8 without a byte order mark.
 * @throws {UnreadableBody} `invalid_body`: the bytes are not JSON that all parsers read alike. The message names the
 *   reason and never repeats what was sent; `details.errors` names the member of the outermost object, if one is to
 *   blame.
 */
export function readStrict(raw: Uint8Array): Node {
  return new Reader(decoded(raw)).whole();
}

/** The value in `raw` as ordinary objects, arrays, strings and numbers; refuses exactly what `readStrict` refuses. */
export function parseStrict(raw: Uint8Array): unknown {
  return valueOf(readStrict(raw));
}

/** What was read as ordinary values. A member named `__proto__` is a member like any other. */
export function valueOf(node: Node): unknown {
  return JSON.parse(node.written);
}

function decoded(raw: Uint8Array): string {
  try {
    return fromUtf8(raw);
  } catch {
    throw new UnreadableBody("The body is not UTF-8.");
  }
}

class Reader {
  readonly #text: string;
  readonly #strings: StringReader;
  #at = 0;
  #depth = 0;
  #field: string | undefined;

  constructor(text: string) {
    this.#text = text;
    this.#strings = new StringReader(text, (rule, sentence) => this.#refused(rule, sentence));
  }

  whole(): Node {
    this.#skipSpace();
    const value = this.#value();
    this.#skipSpace();
    if (this.#at < this.#text.length) this.#notJson();
    return value;
  }

  #value(): Node {
    const from = this.#at;
    const unwritten = this.#unwritten();
    return { ...unwritten, written: this.#text.slice(from, this.#at) };
  }

  #unwritten(): Unwritten<Node> {
    const first = this.#text[this.#at];
    if (first === "{") return this.#object();
    if (first === "[") return this.#array();
    if (first === '"') return { kind: "string", text: this.#string() };
    return this.#matched(WORD) === undefined ? this.#number() : { kind: first === "n" ? "null" : "boolean" };
  }

  #object(): Unwritten<Node> {
    const members = new Map<string, Node>();
    this.#inside("}", () => this.#member(members));
    return { kind: "object", members };
  }

  #array(): Unwritten<Node> {
    const items: Node[] = [];
    this.#inside("]", () => items.push(this.#value()));
    return { kind: "array", items };
  }

  /** Reads what stands up to the closing bracket, each part by `one`. */
  #inside(end: "}" | "]", one: () => void): void {
    // Before anything inside is read: depth is what a reader that calls itself cannot stand.
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) this.#tooDeep();
    this.#at += 1;
    this.#skipSpace();
    if (!this.#taken(end)) {
      do {
        this.#skipSpace();
        one();
        this.#skipSpace();
      } while (this.#taken(","));
      if (!this.#taken(end)) this.#notJson();
    }
    this.#depth -= 1;
  }

  #member(found: Map<string, Node>): void {
    if (this.#text[this.#at] !== '"') this.#notJson();
    if (this.#depth === 1) this.#field = "body";
    const name = this.#string();
    if (this.#depth === 1 && PLAIN_NAME.test(name)) this.#field = name;
    if (found.has(name)) this.#twice();
    this.#skipSpace();
    if (!this.#taken(":")) this.#notJson();
    this.#skipSpace();
    found.set(name, this.#value());
    if (this.#depth === 1) this.#field = undefined;
  }

  #string(): string {
    const { text, end } = this.#strings.from(this.#at) ?? this.#notJson();
    this.#at = end;
    return text;
  }

  #number(): Unwritten<Node> {
    const written = this.#matched(NUMBER) ?? this.#notJson();
    const value = Number(written);
    const lost = value === 0 && /[1-9]/.test(written.split(/[eE]/, 1)[0] ?? "");
    if (!Number.isFinite(value) || lost) {
      const sentence = "A number is too large or too small for a double; send it as a string.";
      this.#refused("must be a number that fits a double", sentence);
    }
    return { kind: "number" };
  }

  #taken(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  #skipSpace(): void {
    this.#matched(SPACE);
  }

  #matched(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }

  #twice(): never {
    const rule = this.#depth === 1 ? "is given twice" : "must not hold a name twice";
    return this.#refused(rule, "An object holds the same name twice.");
  }

  #tooDeep(): never {
    const sentence = `Objects and arrays stand more than ${MAX_DEPTH} deep in each other.`;
    return this.#refused(`must not nest more than ${MAX_DEPTH} deep`, sentence);
  }

  #notJson(): never {
    const lines = this.#text.slice(0, this.#at).split("\n");
    const column = (lines.at(-1)?.length ?? 0) + 1;
    throw new UnreadableBody(`The body is not JSON (line ${lines.length}, column ${column}).`);
  }

  #refused(rule: string, sentence: string): never {
    const fault = this.#field === undefined ? undefined : { field: this.#field, rule };
    throw new UnreadableBody(sentence, "invalid_body", fault);
  }
}
