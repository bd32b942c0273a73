/**
 * Requests, replies and retries without any I/O; the transport only sends what this module says.
 *
 * Every route here is safe to repeat: the control plane recognises an ask by its round, an execution, note and
 * decision by its id, so a lost reply costs nothing but another try.
 */

import { ConnectionFailed, InvalidField, Refused } from "./errors.js";
import { refusal } from "./refusals.js";

/** How long a call is tried for, unless its caller says otherwise, in milliseconds. */
export const PATIENCE_MS = 30_000;

const FIRST_DELAY_MS = 50;
const OWN_DELAY_CAP_MS = 10_000;
const DELAY_CAP_MS = 60_000;
const REPLY_MS = 30_000;
const FAIR_MS = 5_000;
const LONGEST_DOUBLING = 12;
const RETRIED: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const SECONDS = /^[0-9]+$/;
// Date.parse takes nearly anything for a date, "-5" and "1.5" too.
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

const NO_PART = /^\.{0,2}$|\p{Surrogate}/u;

/** One call of a route: what to send, how long the server may hold it, and what its answer is read as. */
export interface Call<T> {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Begins with /api/, each part quoted. */
  path: string;
  query?: Record<string, string | undefined>;
  /** JSON, sent as it is. */
  body?: string;
  headers?: Record<string, string>;
  /** Milliseconds that the server may hold the call. */
  holdMs?: number;
  /** Reads the answer's JSON; throws when it is not what the route says. */
  read: (value: unknown) => T;
}

/** How a call is sent. */
export interface SendOptions {
  /** Milliseconds to go on trying; null: as long as it takes. The sender's own when absent. */
  patienceMs?: number | null | undefined;
  /** Ends it at once, also between two tries; the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** Sends calls until they are answered. */
export interface Sender {
  /**
   * Send a call until it is answered.
   *
   * @returns the answer, as the call reads it; rejects with a `HoldshortError` when the control plane refused or was
   *   not reached in time, with a `RunEnded` when the run is no longer the caller's, with the signal's reason when
   *   that was aborted
   */
  send<T>(call: Call<T>, options?: SendOptions): Promise<T>;
}

/** An HTTP answer; header names in lower case, the body "" where its bytes are no UTF-8. */
export interface Reply {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: string;
}

/** No answer came: refused, reset, or out of time. Never seen outside. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";
}

/** Send it again after so many milliseconds. */
export interface Again {
  delayMs: number;
}

/**
 * A path under /api/v1, each part quoted.
 *
 * Throws `InvalidField` for a part that no address can carry: an empty one, `.` and `..`, which would name another
 * route, and half a surrogate pair.
 */
export function apiPath(...parts: string[]): string {
  return `/api/v1/${parts.map(quoted).join("/")}`;
}

function quoted(part: string): string {
  if (NO_PART.test(part)) throw invalid("id", "must not be empty, only dots, or half a character");
  return encodeURIComponent(part);
}

/** The error of a field that breaks a rule, as the control plane's own. */
export function invalid(field: string, rule: string): InvalidField {
  return new InvalidField(`${field} ${rule}`, { details: { errors: [{ field, rule }] } });
}

/**
 * JSON of an object, without members that are undefined.
 *
 * Throws `InvalidField` for what is no JSON: NaN and infinity, which would be written as null and ask about another
 * payload, big integers, and objects that hold themselves.
 */
export function jsonOf(members: Readonly<Record<string, unknown>>): string {
  const named = Object.entries(members).flatMap(([name, value]) => {
    return value === undefined ? [] : [`${JSON.stringify(name)}:${textOf(name, value)}`];
  });
  return `{${named.join(",")}}`;
}

function textOf(field: string, value: unknown): string {
  const text = written(field, value);
  if (text === undefined) throw invalid(field, "is no JSON");
  return text;
}

function written(field: string, value: unknown): string | undefined {
  try {
    return JSON.stringify(value, (_, member: unknown) => {
      if (typeof member === "number" && !Number.isFinite(member)) throw invalid(field, "NaN and infinity are no JSON");
      return member;
    });
  } catch (error) {
    if (error instanceof InvalidField) throw error;
    throw invalid(field, "is no JSON: a big integer, or something that holds itself");
  }
}

/** Milliseconds, beyond the hold, until an answer counts as lost; every try has 5 s, so that a last one is fair. */
export function replyWithin(leftMs: number): number {
  return Math.min(REPLY_MS, Math.max(FAIR_MS, leftMs));
}

/**
 * Whether to send again. Throws `ConnectionFailed` when no answer came and the caller's time is up.
 *
 * @param call what was sent
 * @param outcome what came back
 * @param tries how many times it was sent
 * @param leftMs milliseconds the caller still gives, Infinity for any
 * @param jitter 0 to 1
 */
export function judge(
  call: Pick<Call<unknown>, "method" | "path">,
  outcome: Reply | Unreachable,
  tries: number,
  leftMs: number,
  jitter: number,
): Again | Reply {
  const reply = outcome instanceof Unreachable ? undefined : outcome;
  if (reply && !RETRIED.has(reply.status)) return reply;
  const delayMs = delayAfter(reply, tries, jitter);
  if (delayMs <= leftMs) return { delayMs };
  if (reply) return reply;
  const reason = outcome instanceof Unreachable ? outcome.message : "";
  throw new ConnectionFailed(`${call.method} ${call.path}: no answer from the control plane (${reason})`);
}

/**
 * Milliseconds until the next try: doubled each time from 50 ms to 10 s, or what Retry-After says, at most 60 s.
 *
 * @param reply the answer that is not one yet; undefined where none came
 * @param tries how many times it was sent
 * @param jitter 0 to 1
 */
export function delayAfter(reply: Reply | undefined, tries: number, jitter: number): number {
  const doubled = FIRST_DELAY_MS * 2 ** Math.min(tries - 1, LONGEST_DOUBLING);
  const own = Math.min(OWN_DELAY_CAP_MS, doubled) * (0.5 + jitter / 2);
  const asked = reply && retryAfter(reply.headers);
  return asked === undefined ? own : Math.min(DELAY_CAP_MS, asked + own);
}

function retryAfter(headers: Reply["headers"]): number | undefined {
  const value = (headers["retry-after"] ?? "").trim();
  if (SECONDS.test(value)) return Number(value) * 1000;
  // A date is compared with the server's own Date, so a wrong clock here does not matter.
  const wanted = dateOf(value);
  const sent = dateOf((headers["date"] ?? "").trim());
  return wanted === undefined || sent === undefined ? undefined : Math.max(0, wanted - sent);
}

function dateOf(text: string): number | undefined {
  const time = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}

/**
 * An answer as what the call reads.
 *
 * Throws the error that the answer's code or status means, and `Refused` with the code `unexpected_reply` when the
 * answer is not what the route says.
 */
export function readReply<T>(call: Call<T>, reply: Reply): T {
  const requestId = reply.headers["x-request-id"] ?? null;
  if (reply.status >= 300) throw refusal(reply.status, reply.body, requestId);
  try {
    return call.read(JSON.parse(reply.body));
  } catch (error) {
    const why = error instanceof Error ? error.message : "it could not be read";
    const told = `${call.method} ${call.path}: the answer is not what the route says (${why}); is HOLDSHORT_URL right?`;
    throw new Refused(told, { code: "unexpected_reply", status: reply.status, requestId });
  }
}
