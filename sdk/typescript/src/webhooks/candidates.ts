/** The signatures that a webhook's headers hold, each with what it claims to sign. */

import { type Bytes, from64Hex, fromBase64, utf8 } from "../bytes.js";
import { type Header, stripped } from "./headers.js";

/** How a body is signed: `sha256=` over it, `t=,v1=` with a time, or Standard Webhooks with a time and an id. */
export type Scheme = "body" | "timestamped" | "standard";

/** One signature that was sent. */
export interface Candidate {
  readonly scheme: Scheme;
  readonly mac: Bytes;
  /** What stands before the body in what was signed. */
  readonly prefix: Bytes;
  /** Unix seconds; null in the scheme without a time. */
  readonly time: number | null;
  readonly webhookId: string | null;
}

/** A proper `webhook-id`: without a dot, so that the split between id, time and body can only be one. */
export const WEBHOOK_ID = /^[A-Za-z0-9_-]{1,128}$/;

/** The headers of the standard scheme. */
export const STANDARD = ["webhook-id", "webhook-timestamp", "webhook-signature"] as const;

const HEX_HEADERS: ReadonlySet<string> = new Set(["x-webhook-signature", "x-hub-signature-256", "x-hax-signature"]);
const TIME = /^[0-9]{1,12}$/;
// The last digit before the padding carries four bits only: one text for each signature.
const ENTRY = /^v1,([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)$/;
const ASCII_SPACE = /[ \t\n\r\v\f]+/;
const NOTHING = utf8("");

/** True when a header that can hold a signature is not empty. */
export function anySignature(headers: readonly Header[]): boolean {
  return headers.some(([name, value]) => value !== "" && (HEX_HEADERS.has(name) || name === STANDARD[2]));
}

/** Every signature in the headers, those of the standard scheme first. */
export function* candidates(headers: readonly Header[]): Generator<Candidate> {
  yield* standardCandidates(headers);
  for (const [name, value] of headers) {
    if (HEX_HEADERS.has(name)) yield* hexCandidates(value);
  }
}

/** Every signature of the standard scheme. */
export function* standardCandidates(headers: readonly Header[]): Generator<Candidate> {
  const [ids, times, lists] = STANDARD.map((wanted) => valuesOf(headers, wanted)) as [string[], string[], string[]];
  for (const entry of lists.join(" ").split(ASCII_SPACE)) {
    const mac = fromBase64(ENTRY.exec(entry)?.[1] ?? "");
    if (mac?.length !== 32) continue;
    for (const webhookId of ids.filter((id) => WEBHOOK_ID.test(id))) {
      for (const time of times.filter((text) => TIME.test(text))) {
        const prefix = utf8(`${webhookId}.${time}.`);
        yield { scheme: "standard", mac, prefix, time: Number(time), webhookId };
      }
    }
  }
}

function* hexCandidates(value: string): Generator<Candidate> {
  const mac = from64Hex(value.startsWith("sha256=") ? value.slice("sha256=".length) : value);
  if (mac === undefined) yield* timestampedCandidates(value);
  else yield { scheme: "body", mac, prefix: NOTHING, time: null, webhookId: null };
}

function* timestampedCandidates(value: string): Generator<Candidate> {
  const parts = value.split(",").map(named);
  const times = parts.filter(([name]) => name === "t");
  const time = times[0]?.[1] ?? "";
  if (times.length !== 1 || !TIME.test(time)) return;
  const prefix = utf8(`${time}.`);
  for (const [name, text] of parts) {
    const mac = name === "v1" ? from64Hex(text) : undefined;
    if (mac !== undefined) yield { scheme: "timestamped", mac, prefix, time: Number(time), webhookId: null };
  }
}

function named(part: string): Header {
  const text = stripped(part);
  const at = text.indexOf("=");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

function valuesOf(headers: readonly Header[], wanted: string): string[] {
  return headers.filter(([name]) => name === wanted).map(([, value]) => value);
}
