/** Bytes as text and back, by WebCrypto's and the language's own means, so that the same code runs in every runtime. */

const UTF8 = new TextEncoder();
const STRICT_UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const HEX_OF_32 = /^[0-9a-fA-F]{64}$/;

/**
 * Bytes whose memory nobody shares, as WebCrypto takes them. Compilers before TypeScript 5.7 have no name for them, so
 * they are named by where they come from.
 */
export type Bytes = ReturnType<InstanceType<typeof TextEncoder>["encode"]>;

/** A text as UTF-8; half a surrogate pair becomes U+FFFD. */
export function utf8(text: string): Bytes {
  return UTF8.encode(text);
}

/** Bytes as text, a byte order mark included. Throws `TypeError` for what is no UTF-8. */
export function fromUtf8(bytes: Uint8Array): string {
  return STRICT_UTF8.decode(bytes);
}

/** Several pieces as one. */
export function joined(...pieces: readonly Uint8Array[]): Bytes {
  const whole = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** Bytes as base64 with its padding. */
export function base64(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** The bytes of padded base64; undefined for anything else, white space included. */
export function fromBase64(text: string): Bytes | undefined {
  return BASE64.test(text) ? Uint8Array.from(atob(text), (character) => character.charCodeAt(0)) : undefined;
}

/** Bytes as lower-case hex digits. */
export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The 32 bytes of 64 hex digits in any case; undefined for anything else. */
export function from64Hex(digits: string): Bytes | undefined {
  if (!HEX_OF_32.test(digits)) return undefined;
  return Uint8Array.from({ length: 32 }, (_, at) => Number.parseInt(digits.slice(2 * at, 2 * at + 2), 16));
}

/** True for equal bytes; how long it takes tells nothing about where they differ. */
export function equalBytes(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false;
  let different = 0;
  for (let at = 0; at < one.length; at += 1) different |= (one[at] ?? 0) ^ (other[at] ?? 0);
  return different === 0;
}
