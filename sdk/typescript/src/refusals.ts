/** Which error an answer of the control plane is: by its code first, by its status where that is not ours to know. */

import * as errors from "./errors.js";

type RefusedKind = typeof errors.Refused;
type EndKind = typeof errors.RunEnded;

const KNOWN: readonly RefusedKind[] = [
  errors.ExecutionFinished,
  errors.RoundNotOpen,
  errors.RequestConflict,
  errors.AmbiguousRequestId,
  errors.ApprovalChanged,
  errors.AlreadyDecided,
  errors.ExecutionExists,
  errors.IdempotencyConflict,
  errors.StepTooLarge,
  errors.KeyRefused,
  errors.WrongScope,
  errors.NodeOwned,
  errors.FeedbackExpired,
  errors.FeedbackCancelled,
  errors.AnswerTaken,
  errors.DuplicateRequest,
  errors.RequestIdUsed,
  errors.AlreadyAnswered,
  errors.InvalidAnswer,
];

const BY_CODE: ReadonlyMap<string, RefusedKind> = new Map([
  ...KNOWN.map((kind) => [kind.code, kind] as const),
  ["not_authenticated", errors.KeyRefused],
]);

const ENDS: ReadonlyMap<string, EndKind> = new Map(
  [errors.StaleInstance, errors.StepMismatch].map((kind) => [kind.code, kind]),
);

const BY_STATUS: ReadonlyMap<number, RefusedKind> = new Map<number, RefusedKind>([
  [400, errors.BadRequest],
  [401, errors.NotAuthorised],
  [403, errors.NotAuthorised],
  [404, errors.NotFound],
  [409, errors.Conflict],
  [410, errors.FeedbackEnded],
  [413, errors.BadRequest],
  [415, errors.BadRequest],
  [422, errors.InvalidField],
  [429, errors.Unavailable],
]);

const SAID_OTHERWISE = new Set(["type", "title", "status", "detail", "error", "message"]);

/**
 * The error that an answer of the control plane becomes.
 *
 * @param status HTTP status, 300 or above
 * @param body of the answer; what is no problem document says nothing
 * @param requestId the answer's X-Request-ID
 */
export function refusal(status: number, body: string, requestId: string | null): errors.Refused | errors.RunEnded {
  const problem = problemOf(body);
  const code = textOf(problem, "error");
  const message = textOf(problem, "message") || textOf(problem, "detail") || unsaid(status);
  const details = Object.fromEntries(Object.entries(problem).filter(([name]) => !SAID_OTHERWISE.has(name)));
  const facts = { code: code ?? null, status, requestId, details };
  const End = ENDS.get(code ?? "");
  if (End) return new End(message, facts);
  const fallback = status >= 500 ? errors.Unavailable : errors.Refused;
  const Kind = BY_CODE.get(code ?? "") ?? BY_STATUS.get(status) ?? fallback;
  return new Kind(`${message} ${Kind.advice}`.trimEnd(), facts);
}

function problemOf(body: string): Readonly<Record<string, unknown>> {
  try {
    const problem: unknown = JSON.parse(body);
    return typeof problem === "object" && problem !== null && !Array.isArray(problem) ? { ...problem } : {};
  } catch {
    return {};
  }
}

function unsaid(status: number): string {
  if (status < 400) {
    return `the control plane answered ${status}, which is not followed: the key goes nowhere else; set HOLDSHORT_URL`;
  }
  return `the control plane answered ${status}`;
}

// What stands between may answer in a form of its own.
function textOf(problem: Readonly<Record<string, unknown>>, member: string): string | undefined {
  const value = problem[member];
  return typeof value === "string" ? value : undefined;
}
