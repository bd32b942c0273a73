// The agent over HTTP: its reasoners, callbacks, cancellations and GET /health, as a Request in and a Response out.

import { fromUtf8 } from "../bytes.js";
import type { Answered } from "./answers.js";
import { invalid, problem, sent, wrongMethod } from "./answers.js";
import { bodyWithin } from "./bodies.js";
import { receive } from "./callbacks.js";
import type { Lifetime } from "./lifetime.js";
import { cancellationOf, FENCE_HEADER, orderOf } from "./orders.js";
import { CALLBACK_PATH, CANCEL, HEALTH_PATH, pathBelow, REASONERS } from "./paths.js";
import type { Reasoners } from "./reasoners.js";
import type { Runner } from "./runner.js";

const BODY_LIMIT = 1024 * 1024;
const DISPATCH_LIMIT = 8 * BODY_LIMIT;
const EXECUTION_ID = /^[A-Za-z0-9._~:-]{1,128}$/;

type Posted = (headers: Headers, body: Uint8Array) => Answered | Promise<Answered>;

/** Answers requests to an agent. */
export class Handler {
  readonly #runner: Runner;
  readonly #reasoners: Reasoners;
  readonly #lifetime: Lifetime;
  readonly #version: string;

  /**
   * @param runner of the agent.
   * @param reasoners of the agent.
   * @param lifetime of the agent.
   * @param version of the agent, for /health.
   */
  constructor(runner: Runner, reasoners: Reasoners, lifetime: Lifetime, version: string) {
    this.#runner = runner;
    this.#reasoners = reasoners;
    this.#lifetime = lifetime;
    this.#version = version;
  }

  /** Answer one request. */
  async answer(request: Request): Promise<Response> {
    return sent(await this.#answered(request), request.method === "HEAD");
  }

  async #answered(request: Request): Promise<Answered> {
    const path = pathBelow(request.url, this.#runner.baseURL);
    const { method, headers } = request;
    if (path === HEALTH_PATH) return method === "GET" || method === "HEAD" ? this.#health() : wrongMethod("GET");
    const take = this.#posted(path);
    if (take === undefined) {
      return problem(404, "not_found", "this agent serves /reasoners/{name}, /webhooks/approval, /health");
    }
    if (method !== "POST") return wrongMethod("POST");
    const limit = headers.has(FENCE_HEADER) ? DISPATCH_LIMIT : BODY_LIMIT;
    const body = await bodyWithin(request, limit);
    if (body === undefined) return problem(413, "body_too_large", `the body is over ${limit} bytes`);
    return await take(headers, body);
  }

  /** What takes a POST to this path; undefined where nothing does. */
  #posted(path: string): Posted | undefined {
    if (path === CALLBACK_PATH) return (headers, body) => receive(this.#runner.registry, headers, body);
    if (path.startsWith(REASONERS)) {
      return (headers, body) => this.#reasoner(path.slice(REASONERS.length), headers, body);
    }
    const executionId = CANCEL.exec(path)?.[1];
    return executionId === undefined ? undefined : (headers, body) => this.#cancel(executionId, headers, body);
  }

  async #reasoner(name: string, headers: Headers, body: Uint8Array): Promise<Answered> {
    const executionId = headers.get("x-execution-id") || undefined;
    if (executionId !== undefined && !EXECUTION_ID.test(executionId)) {
      return invalid("X-Execution-ID", "1-128 of A-Z a-z 0-9 . _ ~ : -");
    }
    const input = json(body);
    if (input === NONE) return problem(400, "invalid_body", "the body is not JSON");
    const order = orderOf(headers, executionId);
    if (order !== undefined) {
      return "refused" in order ? order.refused : this.#lifetime.dispatches.take(name, input, order.read);
    }
    if (executionId !== undefined && this.#lifetime.dispatches.has(executionId)) {
      const told = `execution ${executionId} is running here, as the control plane dispatched it`;
      return problem(409, "execution_exists", told);
    }
    return await this.#lifetime.calls.call(name, input, executionId);
  }

  #cancel(executionId: string, headers: Headers, body: Uint8Array): Answered {
    const known = cancellationOf(headers, json(body));
    return "refused" in known ? known.refused : this.#lifetime.dispatches.cancel(executionId, known.read);
  }

  #health(): Answered {
    const reasoners = this.#reasoners.all.map(({ name, timeoutSeconds = null, resume }) => ({
      name,
      timeout_seconds: timeoutSeconds,
      resume,
    }));
    const known = { node_id: this.#runner.nodeId, version: this.#version, reasoners };
    const status = this.#runner.registry.draining ? "draining" : "ok";
    return { status: 200, body: { status, registered: this.#lifetime.registered, ...known } };
  }
}

const NONE = Symbol("no JSON");

/** A body's JSON, {} for an empty one; NONE where it is none. */
function json(body: Uint8Array): unknown {
  if (body.length === 0) return {};
  try {
    return JSON.parse(fromUtf8(body));
  } catch {
    return NONE;
  }
}
