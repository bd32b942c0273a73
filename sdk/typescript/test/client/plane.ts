/** A control plane that says what a test tells it to: a real server on this machine's loopback address. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";

/** A request as it came. */
export interface Seen {
  method: string;
  /** With its query. */
  url: string;
  headers: IncomingMessage["headers"];
  body: string;
  /** The body's JSON. */
  json: Record<string, unknown>;
  /** Fulfilled when whoever sent it has gone. */
  gone: Promise<unknown>;
}

/** What is answered: JSON (with 200), or a status with headers and a body. */
export type Said = { status: number; headers?: Record<string, string>; body?: unknown } | { json: unknown };

/** What a server does with one request: it answers, never answers, or cuts the connection. */
export type Act = (seen: Seen) => Said | "hold" | "cut" | Promise<Said | "hold" | "cut">;

/** A scripted control plane. */
export class Plane {
  /** What came, in the order in which it came. */
  readonly seen: Seen[] = [];
  readonly #server: Server;
  readonly #acts: Act[];
  readonly #heard = new Map<number, () => void>();
  #port = 0;

  private constructor(acts: readonly Act[]) {
    this.#acts = [...acts];
    this.#server = createServer((request, response) => void this.#take(request, response));
  }

  /** A server that does these acts, one a request, and fails a test with a 500 when there are more requests. */
  static async start(context: TestContext, acts: readonly Act[], port = 0): Promise<Plane> {
    const plane = new Plane(acts);
    plane.#server.listen(port, "127.0.0.1");
    await once(plane.#server, "listening");
    plane.#port = (plane.#server.address() as AddressInfo).port;
    context.after(() => plane.stop());
    return plane;
  }

  /** Where it listens, or listened. */
  get port(): number {
    return this.#port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Requests as "METHOD path?query". */
  get lines(): string[] {
    return this.seen.map((seen) => `${seen.method} ${seen.url}`);
  }

  /** The nth request (from 0), once it has come. */
  async request(index: number): Promise<Seen> {
    if (this.seen.length <= index) await new Promise<void>((resolve) => this.#heard.set(index, resolve));
    return this.seen[index] as Seen;
  }

  /** Fulfilled when no connection is open any more, but for those that are kept for the next request. */
  async quiet(): Promise<void> {
    await Promise.all(this.seen.map((seen) => seen.gone));
    this.#server.closeIdleConnections();
  }

  /** Cut every connection and listen no more. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const body = Buffer.concat(pieces).toString();
    const gone = once(response, "close");
    const json = body === "" ? {} : (JSON.parse(body) as Record<string, unknown>);
    const { method = "", url = "", headers } = request;
    const seen: Seen = { method, url, headers, body, json, gone };
    const act = this.#acts[this.seen.length];
    this.#heard.get(this.seen.push(seen) - 1)?.();
    const said = act ? await act(seen) : { status: 500, body: { error: "unscripted", message: `${method} ${url}` } };
    if (said === "hold") return;
    if (said === "cut") request.socket.destroy();
    else answer(response, said);
  }
}

function answer(response: ServerResponse, said: Said): void {
  const { status, headers = {}, body } = "json" in said ? { status: 200, body: said.json } : said;
  const written = typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(written ?? "");
}

/** An approval as the control plane shows it. */
export function approval(status: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  const response = status === "pending" ? null : { decision: status, feedback: "so be it", data: { n: 1 } };
  return {
    approval_id: "apr_1",
    approval_request_id: "review",
    execution_id: "run-1",
    round: 1,
    status,
    response,
    requested_at: "2026-06-01T10:00:00.123456Z",
    responded_at: null,
    expires_at: "2026-06-04T10:00:00Z",
    request_url: "http://127.0.0.1/approvals/apr_1",
    execution_status: "waiting",
    ...more,
  };
}

/** An execution as the control plane shows it. */
export function execution(status: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  return { execution_id: "run-1", node_id: "node", status, created_at: "2026-06-01T10:00:00Z", ...more };
}

/** A refusal as the control plane words it. */
export function problem(status: number, error: string, more: Record<string, unknown> = {}): Said {
  return { status, body: { type: "about:blank", title: "T", status, error, message: `It is ${error}.`, ...more } };
}
