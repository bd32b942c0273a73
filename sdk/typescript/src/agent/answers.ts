// What an agent answers over HTTP, before it is sent.

import { HandedBack } from "../errors.js";

/** An HTTP answer before it is sent. */
export interface Answered {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

const TITLES: Readonly<Record<number, string>> = {
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  409: "Conflict",
  413: "Content Too Large",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  500: "Internal Server Error",
  503: "Service Unavailable",
};

/** An error answer (RFC 9457) with its stable code. */
export function problem(status: number, code: string, message: string, more: object = {}): Answered {
  const known = { type: "about:blank", title: TITLES[status] ?? "Error", status, detail: message };
  return { status, body: { ...known, error: code, message, ...more } };
}

/** 405, with the method that this path takes. */
export function wrongMethod(allowed: string): Answered {
  return { ...problem(405, "method_not_allowed", `use ${allowed}`), headers: { allow: allowed } };
}

/** 422: a field and the rule it breaks. */
export function invalid(field: string, rule: string): Answered {
  return problem(422, "invalid_input", `${field}: ${rule}`, { errors: [{ field, rule }] });
}

/** 404: this agent has no such function. */
export function noReasoner(name: string): Answered {
  return problem(404, "reasoner_not_found", `there is no reasoner ${JSON.stringify(name)} here`);
}

/** 503: the process that this was sent to is not here any more; the control plane will know that soon. */
export function notMeant(): Answered {
  return problem(503, "other_instance", "another process was at this address when the run was sent; send it again");
}

/** 503: this process stops, and another one (or this one, started again) goes on with the run. */
export function stopping(end?: HandedBack, more: object = {}): Answered {
  const told = end ?? new HandedBack("this agent is stopping; call it again when it is back");
  const answer = problem(503, told.code, told.message, { execution_status: "waiting", ...more });
  return { ...answer, headers: { "retry-after": "1" } };
}

/** The answer as it is sent. */
export function sent(answered: Answered, head: boolean): Response {
  const content = JSON.stringify(answered.body);
  const kind = answered.status >= 400 ? "application/problem+json" : "application/json";
  const length = String(new TextEncoder().encode(content).length);
  const headers = { "content-type": kind, "content-length": length, ...answered.headers };
  return new Response(head ? null : content, { status: answered.status, headers });
}
