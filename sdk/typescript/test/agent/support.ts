// An agent of the tests: served on loopback, silent, and gone when the test has ended.

import type { TestContext } from "node:test";
import { Agent, type AgentOptions, type Log } from "../../src/agent.js";
import { serve } from "../../src/node.js";
import { Plane } from "./plane.js";

/** Keeps what is said. */
export class Said implements Log {
  readonly lines: string[] = [];

  info(message: string): void {
    this.lines.push(message);
  }

  warn(message: string): void {
    this.lines.push(message);
  }

  error(message: string): void {
    this.lines.push(message);
  }
}

/** An agent that is served, and its control plane. */
export interface Scene {
  readonly plane: Plane;
  readonly agent: Agent;
  readonly url: string;
  readonly log: Said;
  stop(drainSeconds?: number): Promise<void>;
}

/** Serve an agent that is registered. */
export async function scene(
  context: TestContext,
  prepare: (agent: Agent) => void,
  options: Partial<AgentOptions> = {},
): Promise<Scene> {
  const plane = await Plane.open();
  const log = new Said();
  const agent = new Agent({ nodeId: "node-1", controlPlaneURL: plane.url, log, ...options });
  prepare(agent);
  const served = await serve(agent, { port: 0, signals: false, drainSeconds: 0 });
  // An agent whose control plane has gone tries for a while to say that it goes.
  context.after(async () => {
    await served.stop();
    plane.close();
  });
  await agent.whenRegistered();
  const url = `http://127.0.0.1:${served.port}`;
  return { plane, agent, url, log, stop: (drainSeconds) => agent.stop({ drainSeconds }) };
}

/** Something that is opened once. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

/** A closed gate. */
export function gate(): Gate {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** Send JSON. */
export async function post(
  url: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(url, { method: "POST", headers, body: text });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Answer["body"] };
}

/** What an agent answered. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
}
