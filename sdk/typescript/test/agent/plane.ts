// A small control plane on loopback: it keeps runs, steps and approvals in memory, and speaks the wire.

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { signWebhook } from "../../src/webhooks.js";
import { type Approval, type Body, conflict, Desk, type Execution, type Reply } from "./desk.js";

/** A request as it came. */
export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Body;
}

/** Answers in place of the plane; undefined lets the plane answer. */
export type Instead = (seen: Seen) => Reply | undefined | Promise<Reply | undefined>;

/** A control plane for one test. */
export class Plane {
  readonly desk = new Desk();
  readonly seen: Seen[] = [];
  /** Answers in place of the plane, first come first asked. */
  readonly instead: Instead[] = [];
  readonly #server: Server;
  #port = 0;

  private constructor() {
    this.#server = createServer((request, response) => void this.#take(request, response));
  }

  /** Listens until the test has ended. */
  static async start(context: TestContext): Promise<Plane> {
    const plane = await Plane.open();
    context.after(() => plane.close());
    return plane;
  }

  /** Listens until it is closed. */
  static async open(): Promise<Plane> {
    const plane = new Plane();
    plane.#server.listen(0, "127.0.0.1");
    await once(plane.#server, "listening");
    plane.#port = (plane.#server.address() as AddressInfo).port;
    return plane;
  }

  /** Listens no more. */
  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** What came to a path that ends so, in the order in which it came. */
  sent(ending: string): Seen[] {
    return this.seen.filter(({ path }) => path.endsWith(ending));
  }

  /** Return once this is so; looked at whenever something came or changed. */
  async until<T>(look: () => T | undefined | false): Promise<T> {
    for (;;) {
      const found = look();
      if (found !== undefined && found !== false) return found;
      await this.desk.changed();
    }
  }

  /** The pending approval of a run, once there is one. */
  pending(executionId: string): Promise<Approval> {
    return this.until(() =>
      this.desk.approvals.find((each) => each.executionId === executionId && each.status === "pending"),
    );
  }

  /** The run once its code has reported its end. */
  ended(executionId: string): Promise<Execution & { reported: Body }> {
    return this.until(() => {
      const execution = this.desk.executions.get(executionId);
      return execution?.reported === undefined ? undefined : { ...execution, reported: execution.reported };
    });
  }

  /** Decide, and push it to where the approval says; `pushed` is what the agent answered. */
  async decide(
    approval: Approval,
    decision: string,
    more: { feedback?: string; response?: unknown } = {},
  ): Promise<unknown> {
    this.desk.decide(approval, decision, more);
    return await this.push(approval);
  }

  /** Tell the agent how an approval ended; undefined where it is not to be told. */
  async push(approval: Approval): Promise<unknown> {
    if (approval.callbackUrl === undefined) return undefined;
    const body = JSON.stringify(this.desk.told(approval));
    const bytes = new TextEncoder().encode(body);
    const options = { scheme: "standard", now: 1, webhookId: "msg_1" } as const;
    const headers = await signWebhook(approval.callbackSecret ?? "", bytes, options);
    const answer = await fetch(approval.callbackUrl, { method: "POST", headers, body });
    return await answer.json();
  }

  /** Give a run to an agent, as the launcher does; the fence counts up. */
  async dispatch(agent: string, reasoner: string, executionId: string, more: Dispatch = {}): Promise<Response> {
    const execution = this.desk.execution(executionId, more.input);
    execution.dispatched = true;
    execution.fence = more.fence ?? execution.fence + 1;
    const headers: Record<string, string> = {
      "x-execution-id": executionId,
      "x-holdshort-fence": String(execution.fence),
      "x-holdshort-steps": String(execution.steps.length),
      ...more.headers,
    };
    return await fetch(`${agent}/reasoners/${reasoner}`, {
      method: "POST",
      headers,
      body: JSON.stringify(execution.input),
    });
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const url = new URL(request.url ?? "/", this.url);
    const body = { ...Object.fromEntries(url.searchParams), ...(text === "" ? {} : (JSON.parse(text) as Body)) };
    const seen = {
      method: request.method ?? "",
      path: url.pathname.replace("/api/v1", ""),
      headers: request.headers,
      body,
    };
    this.seen.push(seen);
    this.desk.change();
    const gone = new Promise<void>((resolve) => {
      response.once("close", resolve);
    });
    const reply = (await this.#instead(seen)) ?? (await this.#answered(seen, gone));
    response.writeHead(reply.status, { "content-type": "application/json" });
    response.end(JSON.stringify(reply.body));
  }

  async #instead(seen: Seen): Promise<Reply | undefined> {
    for (const instead of this.instead) {
      const reply = await instead(seen);
      if (reply !== undefined) return reply;
    }
    return undefined;
  }

  async #answered(seen: Seen, gone: Promise<void>): Promise<Reply> {
    if (seen.path === "/approvals/wait") return await this.#waited(seen.body, gone);
    const fence = seen.headers["x-holdshort-fence"];
    return this.desk.answer(seen.method, seen.path, seen.body, fence === undefined ? undefined : Number(fence));
  }

  /** Held until one of them is final, or whoever asked has gone. */
  async #waited({ approval_ids: ids = [] }: Body, gone: Promise<void>): Promise<Reply> {
    let left = false;
    void gone.then(() => {
      left = true;
      this.desk.change();
    });
    return await this.until(() => {
      const approvals = this.desk.final(ids as string[]);
      return (approvals.length > 0 || left) && { status: 200, body: { approvals } };
    });
  }
}

/** What is said of a dispatch. */
export interface Dispatch {
  readonly input?: unknown;
  readonly fence?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** 409 of a run that was taken over. */
export const STALE = conflict("stale_instance");
