/**
 * HPKE (RFC 9180) as far as a seal needs it: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM, base mode, one
 * message for each key agreement, no associated data. On Node 20 WebCrypto's X25519 warns once that it is experimental.
 */

import { type Bytes, equalBytes, fromBase64, joined, utf8 } from "./bytes.js";
import { hmac } from "./webhooks/keys.js";

/** A key of WebCrypto's, whose type has no name that every runtime's types know. */
type Key = Parameters<typeof crypto.subtle.sign>[1];

/** A private key and the public one as it is sent. */
export interface KeyPair {
  readonly privateKey: Key;
  readonly publicKey: Bytes;
}

/** How long a public key is, in bytes. */
export const KEY_BYTES = 32;

const HASH_BYTES = 32;
const NONCE_BYTES = 12;
const X25519 = { name: "X25519" } as const;
const AES = "AES-GCM";
const NOTHING = utf8("");
const VERSION = utf8("HPKE-v1");
const KEM = joined(utf8("KEM"), Uint8Array.of(0x00, 0x20));
const SUITE = joined(utf8("HPKE"), Uint8Array.of(0x00, 0x20, 0x00, 0x01, 0x00, 0x02));
const BASE_MODE = Uint8Array.of(0x00);
/** What stands before 32 raw bytes in a PKCS #8 file of X25519, as WebCrypto takes private keys. */
const PKCS8 = Uint8Array.from([0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x6e, 4, 0x22, 4, 0x20]);

/** A new key pair, whose private key cannot leave it. */
export async function newKeyPair(): Promise<KeyPair> {
  const made = (await crypto.subtle.generateKey(X25519, false, ["deriveBits"])) as { privateKey: Key; publicKey: Key };
  return { privateKey: made.privateKey, publicKey: await rawKey(made.publicKey) };
}

/** The key pair of 32 raw bytes. */
export async function keyPairOf(raw: Uint8Array): Promise<KeyPair> {
  const known = await crypto.subtle.importKey("pkcs8", joined(PKCS8, raw), X25519, true, ["deriveBits"]);
  const { x = "" } = await crypto.subtle.exportKey("jwk", known);
  const padded = `${x.replaceAll("-", "+").replaceAll("_", "/")}=`;
  return { privateKey: known, publicKey: fromBase64(padded) ?? NOTHING };
}

/** The message that was sealed to this key with this info. Throws when it was not, or was changed. */
export async function opened(keys: KeyPair, enc: Bytes, sealed: Bytes, info: Bytes): Promise<Bytes> {
  const shared = await agreed(keys.privateKey, enc, joined(enc, keys.publicKey));
  const { key, iv } = await schedule(shared, info, "decrypt");
  return new Uint8Array(await crypto.subtle.decrypt({ name: AES, iv }, key, sealed));
}

/** A message sealed to a public key: the seal's own public key, and what was sealed. Throws when the key is none. */
export async function sealed(to: Bytes, message: Bytes, info: Bytes): Promise<{ enc: Bytes; sealed: Bytes }> {
  const own = await newKeyPair();
  const shared = await agreed(own.privateKey, to, joined(own.publicKey, to));
  const { key, iv } = await schedule(shared, info, "encrypt");
  return { enc: own.publicKey, sealed: new Uint8Array(await crypto.subtle.encrypt({ name: AES, iv }, key, message)) };
}

async function rawKey(key: Key): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.exportKey("raw", key));
}

/** ExtractAndExpand over the agreement of both keys. */
async function agreed(privateKey: Key, other: Bytes, context: Bytes): Promise<Bytes> {
  const peer = await crypto.subtle.importKey("raw", other, X25519, true, []);
  const point = new Uint8Array(await crypto.subtle.deriveBits({ ...X25519, public: peer }, privateKey, 8 * KEY_BYTES));
  // A key of low order makes this zero for everybody; the RFC refuses it, and not every WebCrypto does.
  if (equalBytes(point, new Uint8Array(KEY_BYTES))) throw new RangeError("no key agreement with this public key");
  const extracted = await extract(KEM, NOTHING, "eae_prk", point);
  return expand(KEM, extracted, "shared_secret", context, HASH_BYTES);
}

/** The key and the nonce of the one message. */
async function schedule(
  shared: Bytes,
  info: Bytes,
  use: "encrypt" | "decrypt",
): Promise<{ key: Key; iv: Bytes }> {
  const [noPsk, infoHash] = [
    await extract(SUITE, NOTHING, "psk_id_hash", NOTHING),
    await extract(SUITE, NOTHING, "info_hash", info),
  ];
  const context = joined(BASE_MODE, noPsk, infoHash);
  const secret = await extract(SUITE, shared, "secret", NOTHING);
  const raw = await expand(SUITE, secret, "key", context, HASH_BYTES);
  const iv = await expand(SUITE, secret, "base_nonce", context, NONCE_BYTES);
  return { key: await crypto.subtle.importKey("raw", raw, AES, false, [use]), iv };
}

/** LabeledExtract; WebCrypto's HKDF does both steps at once, so this is made of its HMAC. */
function extract(suite: Bytes, salt: Bytes, label: string, material: Bytes): Promise<Bytes> {
  // HMAC pads its key with zeros, so an empty salt is the same as one of zeros, which WebCrypto takes.
  const key = salt.length === 0 ? new Uint8Array(HASH_BYTES) : salt;
  return hmac(key, VERSION, suite, utf8(label), material);
}

/** LabeledExpand to at most one hash's length. */
async function expand(suite: Bytes, secret: Bytes, label: string, info: Bytes, length: number): Promise<Bytes> {
  const size = Uint8Array.of(0, length);
  return (await hmac(secret, size, VERSION, suite, utf8(label), info, Uint8Array.of(1))).slice(0, length);
}
