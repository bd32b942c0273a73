// What drivers say, whatever their language calls it.

import { kindsOf } from "../src/errorBase.js";
import { ToldError } from "../src/errors.js";
import type { ApprovalResult, Form } from "../src/index.js";

/** What is given to an op. */
export type Args = Readonly<Record<string, unknown>>;
/** Does what is asked for; aborted by the request that cancels it. */
export type Op = (args: Args, signal: AbortSignal) => Promise<unknown>;

/** An error as every driver tells it; what is no error of the SDK is an Error. */
export function told(error: unknown): Record<string, unknown> {
  if (!(error instanceof ToldError)) return { kind: "Error", is: [], code: null, status: null };
  const [kind, ...is] = kindsOf(error);
  return { kind, is, code: error.code, status: error.status };
}

/** A result as every driver tells it. */
export function toldResult(result: ApprovalResult): Record<string, unknown> {
  return {
    decision: result.decision,
    feedback: result.feedback,
    execution_id: result.executionId,
    approval_request_id: result.approvalRequestId,
    approval_id: result.approvalId,
    round: result.round,
    data: result.data,
    values: result.values,
    original: result.original,
  };
}

/** The members of the wire under the names that they have here; what is not given is not there. */
export function named(args: Args, names: Readonly<Record<string, string>>): Record<string, unknown> {
  const known = Object.entries(names).filter(([wire]) => wire in args);
  return Object.fromEntries(known.map(([wire, name]) => [name, args[wire]]));
}

/** A text that an op needs. */
export function text(args: Args, name: string): string {
  const value = args[name];
  if (typeof value !== "string") throw new TypeError(`${name} is no text`);
  return value;
}

/** Milliseconds from the seconds that are given. */
export function milliseconds(args: Args, name: string): number | undefined {
  const value = args[name];
  return typeof value === "number" ? 1000 * value : undefined;
}

/** A form of the wire as it is called here. */
export function formOf(form: unknown): Form | undefined {
  if (form === undefined || form === null) return undefined;
  const names = { kind: "kind", options: "options", yes_label: "yesLabel", no_label: "noLabel" };
  return named(form as Args, { ...names, schema: "schema", editable: "editable" }) as unknown as Form;
}

/** What an ask says on the wire, as it is called here. */
export const QUESTION = {
  approval_request_id: "approvalRequestId",
  approval_request_url: "approvalRequestUrl",
  callback_url: "callbackUrl",
  callback_secret: "callbackSecret",
  expires_in_hours: "expiresInHours",
  title: "title",
  description: "description",
  payload: "payload",
  on_expiry: "onExpiry",
  decided_by: "decidedBy",
  round: "round",
} as const;

/** What a short-lived question says on the wire, as it is called here. */
export const FEEDBACK = {
  unique_id: "uniqueId",
  timeout_seconds: "timeoutSeconds",
  options: "options",
  kind: "kind",
  yes_label: "yesLabel",
  no_label: "noLabel",
} as const;
