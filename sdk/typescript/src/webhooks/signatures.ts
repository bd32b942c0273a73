/** Signing and verifying decisions: HMAC-SHA256 over the bytes as sent, in each of the schemes a receiver may meet. */

import { base64, hex, utf8 } from "../bytes.js";
import { InvalidSignature, StaleSignature } from "../errors.js";
import {
  anySignature,
  type Candidate,
  candidates,
  type Scheme,
  STANDARD,
  standardCandidates,
  WEBHOOK_ID,
} from "./candidates.js";
import { headerPairs, type WebhookHeaders } from "./headers.js";
import { hmac, hmacIs, standardKey } from "./keys.js";

/** How far a signature's time may be from now, in seconds. */
export const TOLERANCE_SECONDS = 300;

const MOST_SIGNATURES = 10;
const MOST_SECRETS = 5;

/** What proved a webhook. */
export interface Verified {
  readonly scheme: Scheme;
  /** For telling repeats apart, in the standard scheme; null in the others. */
  readonly webhookId: string | null;
}

/** How a body is to be signed. */
export interface SignOptions {
  /** "standard" (Standard Webhooks), "timestamped" (`t=,v1=`) or "body" (`sha256=`, no time); "standard" if absent. */
  readonly scheme?: Scheme;
  /** Unix seconds, for the schemes with a time; now if absent. */
  readonly now?: number;
  /** Unique for each message, for the standard scheme: `[A-Za-z0-9_-]{1,128}`. */
  readonly webhookId?: string;
}

/**
 * The headers that prove a body.
 *
 * @param secret shared with the receiver; in the standard scheme `whsec_` + base64 is decoded.
 * @param body exactly what is sent; a text is sent as UTF-8.
 * @returns headers to send with the body.
 * @throws {RangeError} the secret is empty, the time no whole second, or the standard scheme has no proper id.
 */
export async function signWebhook(
  secret: string,
  body: Uint8Array | string,
  options: SignOptions = {},
): Promise<Record<string, string>> {
  const { scheme = "standard", now = unixSeconds(), webhookId = "" } = options;
  if (secret === "") throw new RangeError("secret must not be empty: anybody could sign");
  if (!Number.isSafeInteger(now) || now < 0) throw new RangeError("now must be a whole number of seconds");
  const signed = bytesOf(body);
  if (scheme === "body") return { "X-Webhook-Signature": `sha256=${hex(await hmac(utf8(secret), signed))}` };
  if (scheme === "timestamped") {
    const mac = await hmac(utf8(secret), utf8(`${now}.`), signed);
    return { "X-Webhook-Signature": `t=${now},v1=${hex(mac)}` };
  }
  if (!WEBHOOK_ID.test(webhookId)) throw new RangeError("webhookId must be 1-128 of A-Z a-z 0-9 _ -");
  const mac = await hmac(standardKey(secret), utf8(`${webhookId}.${now}.`), signed);
  const [id, time, signature] = STANDARD;
  return { [id]: webhookId, [time]: String(now), [signature]: `v1,${base64(mac)}` };
}

/**
 * Proves that one of the secrets signed exactly this body, not more than 300 s from now.
 *
 * @param headers as received.
 * @param body as received, never parsed and written again.
 * @param secrets newest first; the first five are tried. An empty one counts as none.
 * @param options `now` in unix seconds, for tests.
 * @returns what proved it.
 * @throws {StaleSignature} one holds, but its time is too far away.
 * @throws {InvalidSignature} none holds, none was sent, or there is no secret; `code` says which
 *   (`invalid_signature`, `missing_signature`, `not_configured`).
 */
export async function verifyWebhook(
  headers: WebhookHeaders,
  body: Uint8Array | string,
  secrets: readonly string[],
  options: { readonly now?: number } = {},
): Promise<Verified> {
  const usable = secrets.filter((secret) => secret !== "").slice(0, MOST_SECRETS);
  if (usable.length === 0) {
    throw new InvalidSignature("no secret is configured, so nothing can be proven", { code: "not_configured" });
  }
  const pairs = headerPairs(headers);
  if (!anySignature(pairs)) {
    throw new InvalidSignature("no signature header was sent", { code: "missing_signature" });
  }
  const held = await holding(candidates(pairs), bytesOf(body), usable);
  const now = options.now ?? unixSeconds();
  const fresh = held.find(({ time }) => time === null || Math.abs(now - time) <= TOLERANCE_SECONDS);
  if (fresh !== undefined) return { scheme: fresh.scheme, webhookId: fresh.webhookId };
  throw held.length > 0 ? new StaleSignature() : new InvalidSignature();
}

/**
 * True when a Standard Webhooks signature holds under this secret, whatever its time: what an agent asks of a callback.
 *
 * @param headers as received.
 * @param body as received.
 * @param secret the callback's own; under an empty one nothing holds.
 */
export async function standardHolds(
  headers: WebhookHeaders,
  body: Uint8Array | string,
  secret: string,
): Promise<boolean> {
  if (secret === "") return false;
  return (await holding(standardCandidates(headerPairs(headers)), bytesOf(body), [secret])).length > 0;
}

/** Those of the first ten signatures that hold, in their order. */
async function holding(
  sent: Iterable<Candidate>,
  body: Uint8Array,
  secrets: readonly string[],
): Promise<Candidate[]> {
  const held: Candidate[] = [];
  let tried = 0;
  for (const candidate of sent) {
    tried += 1;
    if (tried > MOST_SIGNATURES) break;
    if (await holds(candidate, body, secrets)) held.push(candidate);
  }
  return held;
}

async function holds(candidate: Candidate, body: Uint8Array, secrets: readonly string[]): Promise<boolean> {
  const key = candidate.scheme === "standard" ? standardKey : utf8;
  for (const secret of secrets) {
    if (await hmacIs(candidate.mac, key(secret), candidate.prefix, body)) return true;
  }
  return false;
}

function bytesOf(body: Uint8Array | string): Uint8Array {
  return typeof body === "string" ? utf8(body) : body;
}

function unixSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
