/** The strings of strict JSON: no control characters, no NUL, no half of a surrogate pair. */

const PLAIN = /[^"\\\u0000-\u001f]*/y;
const FOUR_DIGITS = /[0-9a-fA-F]{4}/y;
const ONE_LETTER = new Map([..."\"\\/"].map((same) => [same, same] as const))
  .set("b", "\b")
  .set("f", "\f")
  .set("n", "\n")
  .set("r", "\r")
  .set("t", "\t");

const HIGH = 0xd800;
const LOW = 0xdc00;
const LAST = 0xdfff;

/** A piece of a string, unescaped, and where it ends in the text. */
interface Piece {
  readonly text: string;
  readonly end: number;
}

/** Says that a string is JSON and yet refused: the rule for a list of faults, and a sentence. */
type Refuse = (rule: string, sentence: string) => never;

/** Reads the strings of one text, whose own surrogates are whole pairs because it came from UTF-8. */
export class StringReader {
  readonly #text: string;
  readonly #refuse: Refuse;

  constructor(text: string, refuse: Refuse) {
    this.#text = text;
    this.#refuse = refuse;
  }

  /** The string whose opening quote stands at `start`, and where it ends; undefined for what is no JSON string. */
  from(start: number): Piece | undefined {
    let text = "";
    let at = start + 1;
    for (;;) {
      const plain = matched(PLAIN, this.#text, at);
      text += plain;
      at += plain.length;
      if (this.#text[at] === '"') return { text, end: at + 1 };
      const escape = this.#text[at] === "\\" ? this.#escape(at + 1) : undefined;
      if (escape === undefined) return undefined;
      text += escape.text;
      at = escape.end;
    }
  }

  /** What the escape stands for whose letter is at `at`: one character, or both halves of a pair. */
  #escape(at: number): Piece | undefined {
    const letter = this.#text[at] ?? "";
    if (letter !== "u") return piece(ONE_LETTER.get(letter), at + 1);
    const unit = this.#unit(at + 1);
    if (unit === undefined) return undefined;
    if (unit === 0) this.#refuse("must not contain a NUL character", "A string holds a NUL character; take it out.");
    return isHalf(unit) ? this.#pair(unit, at + 5) : piece(String.fromCharCode(unit), at + 5);
  }

  #pair(first: number, at: number): Piece {
    const second = this.#text.startsWith("\\u", at) ? this.#unit(at + 2) : undefined;
    const whole = first < LOW && second !== undefined && second >= LOW && isHalf(second);
    if (whole) return { text: String.fromCharCode(first, second), end: at + 6 };
    const sentence = "A string holds half of a surrogate pair; send both halves or neither.";
    return this.#refuse("must not contain half of a surrogate pair", sentence);
  }

  #unit(at: number): number | undefined {
    const digits = matched(FOUR_DIGITS, this.#text, at);
    return digits === "" ? undefined : Number.parseInt(digits, 16);
  }
}

function piece(text: string | undefined, end: number): Piece | undefined {
  return text === undefined ? undefined : { text, end };
}

function isHalf(unit: number): boolean {
  return unit >= HIGH && unit <= LAST;
}

function matched(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}
