/** HMAC-SHA256, and the key that a secret stands for in each scheme. */

import { type Bytes, equalBytes, fromBase64, joined, utf8 } from "../bytes.js";

const WHSEC = "whsec_";

/**
 * The key of the standard scheme: what follows `whsec_` decoded from base64, any other text as it is.
 *
 * An empty key would let anybody sign, so nothing after the prefix is no base64 secret.
 */
export function standardKey(secret: string): Bytes {
  const key = secret.startsWith(WHSEC) ? fromBase64(secret.slice(WHSEC.length)) : undefined;
  return key === undefined || key.length === 0 ? utf8(secret) : key;
}

/** The HMAC-SHA256 of several pieces after each other; the key is not empty. */
export async function hmac(key: Bytes, ...signed: readonly Uint8Array[]): Promise<Bytes> {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, joined(...signed)));
}

/** True when the HMAC of the pieces is this one. Compares in constant time. */
export async function hmacIs(mac: Uint8Array, key: Bytes, ...signed: readonly Uint8Array[]): Promise<boolean> {
  return equalBytes(await hmac(key, ...signed), mac);
}
