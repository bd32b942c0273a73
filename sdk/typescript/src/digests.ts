/**
 * The digest of a payload: the same for the same content however it is spaced, ordered or escaped.
 *
 * Canonical form: names sorted by code point, no white space, numbers as written, strings in UTF-8 with only the
 * escapes that JSON requires.
 */

import { hex, utf8 } from "./bytes.js";
import { readStrict, type Node } from "./strictJson.js";

/**
 * SHA-256 of the canonical form of one JSON value: what the control plane calls `payload_digest`.
 *
 * @param raw the value as it is sent, as bytes or text. `JSON.stringify` writes what is sent; numbers count as they
 *   are written, so 1.10 and 1.1 differ.
 * @returns 64 lower-case hex digits.
 * @throws {UnreadableBody} `invalid_body`: it is no strict JSON.
 */
export async function payloadDigest(raw: Uint8Array | string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", utf8(canonical(raw)));
  return hex(new Uint8Array(digest));
}

/** The canonical form of one JSON value. Throws as `payloadDigest` does. */
export function canonical(raw: Uint8Array | string): string {
  return canonicalOf(readStrict(typeof raw === "string" ? utf8(raw) : raw));
}

/** The canonical form of what was read; how deep it goes is bounded by the reader. */
export function canonicalOf(node: Node): string {
  switch (node.kind) {
    case "object":
      return `{${sorted(node.members).map(member).join(",")}}`;
    case "array":
      return `[${node.items.map(canonicalOf).join(",")}]`;
    case "string":
      return JSON.stringify(node.text);
    default:
      return node.written;
  }
}

function member([name, value]: readonly [string, Node]): string {
  return `${JSON.stringify(name)}:${canonicalOf(value)}`;
}

function sorted(members: ReadonlyMap<string, Node>): [string, Node][] {
  return [...members].sort(([one], [other]) => byCodePoint(one, other));
}

/** Their order by code point, which is not that of the language: it puts the halves of pairs before U+E000. */
function byCodePoint(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one.charCodeAt(at) === other.charCodeAt(at)) at += 1;
  if (at === one.length || at === other.length) return one.length - other.length;
  // Where pairs differ in their second half the first is the same, so the halves decide as the whole pairs would.
  return (one.codePointAt(at) ?? 0) - (other.codePointAt(at) ?? 0);
}
