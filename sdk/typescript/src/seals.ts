/** The seal of one short-lived question's answer: HPKE, base mode, one shot. Only its asker can open it. */

import { base64, fromBase64, fromUtf8, joined, utf8 } from "./bytes.js";
import { UnreadableAnswer } from "./errors.js";
import { KEY_BYTES, type KeyPair, keyPairOf, newKeyPair, opened, sealed } from "./hpke.js";

const INFO = "holdshort human_feedback 1\0";
/** Answers are padded to a multiple of this, so that their length tells little. */
const BLOCK = 64;

/** A sealed answer, in base64. */
export interface Sealed {
  /** The seal's own public key. */
  readonly enc: string;
  /** The answer, which only the question's key opens. */
  readonly ct: string;
}

/** The key pair of one question, kept in memory only. */
export class Lock {
  /** What is sent with the question, in base64. */
  readonly publicKey: string;
  #keys: KeyPair | undefined;

  /** @param keys as `newLock` makes them */
  constructor(keys: KeyPair) {
    this.publicKey = base64(keys.publicKey);
    this.#keys = keys;
  }

  /**
   * The answer that was sealed to this key.
   *
   * @param uniqueId of the question; an answer to another one does not open.
   * @param enc the seal's own public key, in base64.
   * @param ct the sealed answer, in base64.
   * @throws {UnreadableAnswer} it was not sealed to this key and question, it was changed, or the key is forgotten.
   */
  async open(uniqueId: string, enc: string, ct: string): Promise<string> {
    const to = fromBase64(enc);
    const message = fromBase64(ct);
    if (this.#keys === undefined || to?.length !== KEY_BYTES || message === undefined) throw new UnreadableAnswer();
    try {
      return unpadded(await opened(this.#keys, to, message, infoOf(uniqueId)));
    } catch {
      // What it was made from stays out of the error.
      throw new UnreadableAnswer();
    }
  }

  /** Lets go of the private key; what was sealed to it can never be opened again. */
  forget(): void {
    this.#keys = undefined;
  }
}

/**
 * A lock for one question.
 *
 * @param privateKey 32 raw bytes, for tests; a new key when absent, which cannot be read out of WebCrypto.
 * @throws {RangeError} the private key has another length.
 */
export async function newLock(privateKey?: Uint8Array): Promise<Lock> {
  if (privateKey === undefined) return new Lock(await newKeyPair());
  if (privateKey.length !== KEY_BYTES) throw new RangeError("a private key is 32 bytes");
  return new Lock(await keyPairOf(privateKey));
}

/**
 * An answer sealed to a question's key: what the control plane does, for tests.
 *
 * @param publicKey of the question, in base64.
 * @param uniqueId of the question.
 * @param answer what the person gave; it does not end with NUL.
 * @throws {RangeError} the key is none.
 */
export async function seal(publicKey: string, uniqueId: string, answer: string): Promise<Sealed> {
  const to = fromBase64(publicKey);
  if (to?.length !== KEY_BYTES) throw new RangeError("a public key is 32 bytes in base64");
  const plain = utf8(answer);
  const padded = joined(plain, new Uint8Array(BLOCK - (plain.length % BLOCK)));
  const made = await sealed(to, padded, infoOf(uniqueId));
  return { enc: base64(made.enc), ct: base64(made.sealed) };
}

function infoOf(uniqueId: string): ReturnType<typeof utf8> {
  return utf8(INFO + uniqueId);
}

function unpadded(padded: Uint8Array): string {
  let end = padded.length;
  while (end > 0 && padded[end - 1] === 0) end -= 1;
  if (padded.length % BLOCK !== 0 || end === padded.length) throw new RangeError("no padding");
  return fromUtf8(padded.subarray(0, end));
}
