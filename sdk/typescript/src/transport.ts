/** The only module that sends, by `fetch`. */

import { invalid, Unreachable, type Call, type Reply } from "./core.js";
import { Slots } from "./slots.js";
import { TimeIsUp, withTimeout } from "./timers.js";

/** Something that sends as the global `fetch` does. */
export type Fetch = typeof globalThis.fetch;

/** How many short calls are under way at a time. */
const AT_ONCE = 32;
const A_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const A_VALUE = /^[\t -~\u0080-\u00ff]*$/;
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Headers with their names in lower case. Throws `InvalidField` for one that cannot be sent, without showing it. */
export function checkedHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const checked = Object.entries(headers).map(([name, value]) => {
    if (A_NAME.test(name) && A_VALUE.test(value)) return [name.toLowerCase(), value] as const;
    throw invalid("headers", "hold a name or a value that no header can have");
  });
  return Object.fromEntries(checked);
}

/** Sends single requests. At most 32 short ones are in flight; held ones (waits) do not count. */
export class Transport {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #fetch: Fetch;
  readonly #slots = new Slots(AT_ONCE);

  /**
   * @param url of the control plane, without a slash at its end
   * @param headers sent with every request, names in lower case
   * @param fetch sends; the global one when absent
   */
  constructor(url: string, headers: Readonly<Record<string, string>>, fetch?: Fetch) {
    this.#url = url;
    this.#headers = headers;
    this.#fetch = fetch ?? ((input, init) => globalThis.fetch(input, init));
  }

  /**
   * Send a call once.
   *
   * @param call what to send
   * @param replyMs milliseconds, beyond the call's hold, until its answer counts as lost
   * @param signal ends it at once; the promise rejects with the signal's reason
   * @returns the answer, or why none came
   */
  async exchange(call: Call<unknown>, replyMs: number, signal?: AbortSignal): Promise<Reply | Unreachable> {
    if (call.holdMs) return this.#tried(call, replyMs + call.holdMs, signal);
    const leave = await this.#slots.enter(signal);
    try {
      return await this.#tried(call, replyMs, signal);
    } finally {
      leave();
    }
  }

  async #tried(call: Call<unknown>, ms: number, signal?: AbortSignal): Promise<Reply | Unreachable> {
    try {
      return await withTimeout(ms, signal, (inner) => this.#sent(call, inner));
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      return new Unreachable(this.#unsaid(reasonOf(error)));
    }
  }

  async #sent(call: Call<unknown>, signal: AbortSignal): Promise<Reply> {
    const body = call.body === undefined ? {} : { body: call.body };
    const json = call.body === undefined ? {} : { "content-type": "application/json" };
    const headers = { ...this.#headers, ...json, ...call.headers };
    // A redirect is an answer: whoever is at its other end must not get the key.
    const init = { method: call.method, headers, redirect: "manual", signal, ...body } as const;
    const response = await this.#fetch(this.#url + call.path + queryOf(call.query), init);
    const bytes = await response.arrayBuffer();
    // A browser hides what a redirect says.
    const status = response.type === "opaqueredirect" ? 302 : response.status;
    return { status, headers: Object.fromEntries(response.headers), body: textOf(bytes) };
  }

  /** A reason without what is sent in headers, should whatever sends have put it there. */
  #unsaid(reason: string): string {
    return Object.entries(this.#headers)
      .filter(([name]) => name !== "user-agent")
      .flatMap(([, value]) => [value, value.replace(/^Bearer /, "")])
      .filter((value) => value !== "")
      .reduce((told, value) => told.replaceAll(value, "..."), reason);
  }
}

function queryOf(query: Call<unknown>["query"]): string {
  const given = Object.entries(query ?? {}).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}

function textOf(bytes: ArrayBuffer): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    return "";
  }
}

/** What `fetch` says is "fetch failed"; why, its cause says. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "it could not be sent";
  if (error instanceof TimeIsUp) return error.message;
  const cause: unknown = error.cause;
  const why = cause instanceof Error ? codeOf(cause) || cause.message : "";
  return why ? `${error.message}: ${why}` : `${error.name}: ${error.message}`;
}

function codeOf(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : "";
}
