import assert from "node:assert/strict";
import { test } from "node:test";

import { utf8 } from "../../src/bytes.js";
import { MAX_DEPTH, parseStrict, readStrict } from "../../src/strictJson.js";

// What takes the square of its length would take minutes; a busy machine takes a while.
const LONGEST_MS = 20_000;
const refused = { name: "UnreadableBody", code: "invalid_body" };

function nested(depth: number): string {
  return "[".repeat(depth) + "]".repeat(depth);
}

test("what every parser reads alike is read as JSON.parse reads it", () => {
  const texts = [
    ' { "a" : [ 1 , -0 , 1.5e3 , true , false , null ] , "b" : { } , "c" : [ ] } ',
    '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\udc4d\\u2028"',
    '"\u{1f44d}\u2028\u007f \\\\u0000 \\\\ud800"',
    '{"__proto__":{"a":1},"":2,"constructor":3}',
    "1e308",
    "2.2250738585072014e-308",
    "5e-324",
    "0e999",
    "-0.000e-999",
    `1${"0".repeat(308)}`,
    '\t\r\n "x" \n',
    nested(MAX_DEPTH),
    `["${"[".repeat(100)}"]`,
  ];
  for (const text of texts) assert.deepEqual(parseStrict(utf8(text)), JSON.parse(text), text);
});

test("what parsers read in several ways is refused", () => {
  const texts = [
    '{"a":1,"a":1}',
    '{"a":1,"\\u0061":2}',
    '[{"b":{"a":1,"a":2}}]',
    '"\\u0000"',
    '{"\\u0000":1}',
    '"\\ud83d"',
    '"\\udc4d"',
    '"\\udc4d\\ud83d"',
    '"\\ud83d\\ud83d\\udc4d"',
    '"\\ud83dx\\udc4d"',
    "1e309",
    "-1e309",
    "1e-999",
    "0.0000000001e-400",
    `1${"0".repeat(309)}`,
  ];
  for (const text of texts) assert.throws(() => parseStrict(utf8(text)), refused, text);
});

test("what is no JSON is refused", () => {
  const texts = [
    "",
    " ",
    "{",
    "[1,]",
    "[,1]",
    '{"a":1,}',
    '{"a" 1}',
    "{a:1}",
    "{1:1}",
    "[1 2]",
    "01",
    "+1",
    ".5",
    "1.",
    "1e",
    "0x1",
    "NaN",
    "-Infinity",
    "nul",
    "nulll",
    "True",
    '"a',
    '"\n"',
    '"\u0000"',
    '"\\x41"',
    '"\\u12"',
    '"\\u+123"',
    '"\\',
    "'a'",
    "1 x",
    "\u00a01",
    "\ufeff1",
    "/**/1",
    "]",
    "[}",
  ];
  for (const text of texts) assert.throws(() => parseStrict(utf8(text)), refused, text);
});

test("bytes that are no UTF-8 are refused", () => {
  for (const bytes of [[0x22, 0xff, 0x22], [0x22, 0xc0, 0x80, 0x22], [0x22, 0xed, 0xa0, 0xbd, 0x22], [0xef, 0xbb]]) {
    assert.throws(() => readStrict(Uint8Array.from(bytes)), refused);
  }
});

test("depth is refused before anything can overflow on it", () => {
  for (const text of [nested(MAX_DEPTH + 1), nested(1_000_000), '{"a":'.repeat(1_000_000), "[".repeat(65)]) {
    assert.throws(() => parseStrict(utf8(text)), refused);
  }
});

test("numbers and members stand as they were written", () => {
  const read = readStrict(utf8('{ "a" : { "n": 1.10 , "\\u20ac":"\\u20ac" } }'));
  assert.ok(read.kind === "object");
  assert.equal(read.members.get("a")?.written, '{ "n": 1.10 , "\\u20ac":"\\u20ac" }');
});

test("a refused member is named, and nothing that was sent is repeated", () => {
  const faults = [
    ['{"a":1,"a":2}', "a", "is given twice"],
    ['{"a":{"b":1,"b":2}}', "a", "must not hold a name twice"],
    ['{"a":["x\\u0000"]}', "a", "must not contain a NUL character"],
    ['{"a b":"\\ud800"}', "body", "must not contain half of a surrogate pair"],
    ['{"a":1e999}', "a", "must be a number that fits a double"],
    [`{"a":1,"b":${nested(64)}}`, "b", "must not nest more than 64 deep"],
  ] as const;
  for (const [text, field, rule] of faults) {
    assert.throws(() => parseStrict(utf8(text)), { ...refused, details: { errors: [{ field, rule }] } });
  }
  assert.throws(() => parseStrict(utf8('{"a":\n private}')), { message: "The body is not JSON (line 2, column 2)." });
});

test("long texts are read in the time that their length needs", () => {
  const started = performance.now();
  const text = JSON.stringify(Array.from({ length: 20_000 }, (_, at) => ({ [`name ${at}`]: `a "text" \n ${at}` })));
  assert.equal((parseStrict(utf8(text)) as unknown[]).length, 20_000);
  assert.ok(performance.now() - started < LONGEST_MS);
});
