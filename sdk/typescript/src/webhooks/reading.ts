/**
 * Reads the body of an approval webhook in either shape, and fails closed where two readings are possible.
 *
 * | shape | request id | decision | the sender's own value |
 * |---|---|---|---|
 * | flat | `requestId` | `decision` | `response`, or `values` for a `response` of `{"values": ...}` |
 * | envelope | `data.requestId`, `data.id` | `data.response.decision`, `.action`; `type` expired | `data.response` |
 */

import { utf8 } from "../bytes.js";
import { canonicalOf } from "../digests.js";
import { type Node, readStrict } from "../strictJson.js";
import { UnreadableBody } from "../unreadable.js";
import { agreed, found, inside, member, type Members, refused, textOf } from "./members.js";
import { type Named, namedBy } from "./names.js";
import { type Decision, decisionWord, knownWord } from "./words.js";

/** One decision as a webhook told it; nothing was looked up. */
export interface DecisionReceived extends Named {
  readonly kind: "decision";
  /** The caller's approval_request_id; null when only the control plane's own `approvalId` was named. */
  readonly requestId: string | null;
  /** The control plane's id of the approval; null where it was not named. */
  readonly approvalId: string | null;
  /** The execution that is meant; null where it was not named. */
  readonly executionId: string | null;
  /** The round that is meant; null where it was not named. */
  readonly round: number | null;
  readonly decision: Decision;
  /** The reviewer's words, "" when there are none. */
  readonly feedback: string;
  /** The sender's own value; null when there is none. */
  readonly response: unknown;
  /** The same as the JSON text that was received, where numbers stand as they were written; null when there is none. */
  readonly responseText: string | null;
  /** Which of the two shapes it came in. */
  readonly shape: "flat" | "envelope";
}

/** An event that decides nothing, such as `request.opened`. */
export interface IgnoredEvent {
  readonly kind: "ignored";
  /** The event's type as sent. */
  readonly type: string;
}

const REQUEST_NAMES = ["requestId", "approval_request_id"];
const EXECUTION_NAMES = ["executionId", "execution_id"];

/**
 * The decision in a webhook's body, as the control plane reads it.
 *
 * @param body as received, after `verifyWebhook` has proven the same bytes.
 * @returns the decision, or that the event decides nothing.
 * @throws {UnreadableBody} it holds no decision that can be read in one way only; `code` says why.
 */
export function readDecision(body: Uint8Array | string): DecisionReceived | IgnoredEvent {
  const whole = readStrict(typeof body === "string" ? utf8(body) : body);
  if (whole.kind !== "object") throw new UnreadableBody("The body must be a JSON object.");
  const top = whole.members;
  const type = top.get("type");
  const data = top.get("data");
  if (type?.kind !== "string" || type.text === "" || data?.kind !== "object") return flat(top, []);
  if (answersFlat(top)) {
    agreed("requestId", found([top, data.members], REQUEST_NAMES));
    return flat(top, envelopeWords(type.text, data.members));
  }
  return envelope(top, type.text, data.members);
}

function answersFlat(top: Members): boolean {
  return found([top], [...REQUEST_NAMES, "approval_id"]).length > 0 && member(top, "decision") !== undefined;
}

/** Reads the flat shape; `rivals` are the words that a reader of the envelope would find. */
function flat(top: Members, rivals: readonly unknown[]): DecisionReceived {
  const named = namedBy([top], found([top], REQUEST_NAMES), found([top], EXECUTION_NAMES));
  const sent = member(top, "decision");
  if (sent === undefined) throw missing();
  const decision = decisionWord(wordOf(sent));
  const response = inside(top, "response");
  // A reader of the other shape would look there; `action` beside a flat decision is the sender's own matter.
  const others = [...rivals, wordOf(response.get("decision"))].map(knownWord);
  if (others.some((other) => other !== undefined && other !== decision)) throw conflict();
  const feedback = feedbackIn(top, response);
  return { kind: "decision", ...named, decision, feedback, ...valueIn(flatResponse(top)), shape: "flat" };
}

function envelope(top: Members, type: string, data: Members): DecisionReceived | IgnoredEvent {
  const words = envelopeWords(type, data);
  const rival = member(top, "decision");
  const all = rival === undefined ? words : [...words, wordOf(rival)];
  if (!["completed", "expired"].includes(event(type))) {
    if (all.some((word) => knownWord(word) !== undefined)) throw conflict();
    return { kind: "ignored", type };
  }
  const places = [top, data];
  const request = [...found(places, REQUEST_NAMES), ...found([data], ["id"])];
  const named = namedBy(places, request, found([...places, inside(data, "metadata")], EXECUTION_NAMES));
  if (words.length === 0) throw missing();
  const [decision, ...others] = new Set(all.map(decisionWord));
  if (decision === undefined || others.length > 0) throw conflict();
  const feedback = feedbackIn(top, inside(data, "response"));
  const response = valueIn(member(data, "response")?.written);
  return { kind: "decision", ...named, decision, feedback, ...response, shape: "envelope" };
}

function event(type: string): string {
  return type.startsWith("request.") ? type.slice("request.".length) : type;
}

/** Every decision word that stands in an envelope's own places, known or not. */
function envelopeWords(type: string, data: Members): unknown[] {
  const words = found([inside(data, "response")], ["decision", "action"]).map(([, value]) => wordOf(value));
  return event(type) === "expired" ? [...words, "expired"] : words;
}

function wordOf(value: Node | undefined): unknown {
  return value?.kind === "string" ? value.text : null;
}

function feedbackIn(top: Members, response: Members): string {
  const own = member(top, "feedback");
  if (own !== undefined) return textOf("feedback", own);
  const inner = response.get("feedback");
  return inner?.kind === "string" ? inner.text : "";
}

/** The flat shape's own value as it was sent, where `values` may stand for a response that has nothing else. */
function flatResponse(top: Members): string | undefined {
  const response = member(top, "response");
  const values = member(top, "values");
  if (values === undefined) return response?.written;
  if (response === undefined) return `{"values":${values.written}}`;
  const inner = member(inside(top, "response"), "values");
  if (inner !== undefined && canonicalOf(inner) === canonicalOf(values)) return response.written;
  return refused("values", "is given beside a response that has others");
}

function valueIn(written: string | undefined): Pick<DecisionReceived, "response" | "responseText"> {
  if (written === undefined) return { response: null, responseText: null };
  return { response: JSON.parse(written), responseText: written };
}

function missing(): UnreadableBody {
  const sentence = "The body holds no decision; send approved, rejected, request_changes or expired.";
  return new UnreadableBody(sentence, "decision_missing");
}

function conflict(): UnreadableBody {
  return new UnreadableBody("The body holds two decisions that disagree; send one.", "decision_conflict");
}
