// An agent behind node:http.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { isHere } from "../origin.js";
import type { Agent } from "./agent.js";
import { requestOf, respond } from "./nodeHttp.js";
import { letEndsPass } from "./unhandled.js";

const STOP_SIGNALS = ["SIGTERM", "SIGINT"] as const;

/** How an agent is served. */
export interface ServeOptions {
  /** To listen on; 8001 when absent, 0 for any free one. */
  readonly port?: number | undefined;
  /** Address to listen on; 127.0.0.1 when absent. */
  readonly host?: string | undefined;
  /** How long running reasoners may go on when it stops; 8 when absent. */
  readonly drainSeconds?: number | undefined;
  /** False leaves SIGTERM and SIGINT to the program, which then calls `stop`. */
  readonly signals?: boolean | undefined;
}

/** An agent that is served. */
export interface Served {
  /** The port it listens on. */
  readonly port: number;
  /** Fulfilled when it has stopped, by a signal too; the process ends when nothing else keeps it. */
  readonly stopped: Promise<void>;
  /** Stop, as SIGTERM does. */
  stop(): Promise<void>;
}

/**
 * Listen, register, and serve an agent until SIGTERM, Ctrl-C or `stop`.
 *
 * On these, running reasoners may finish for `drainSeconds`; waiting ones are handed back at once: not an end, not a
 * failure. What has not finished then is given to another process. A second signal ends the process at once.
 *
 * Callbacks are proven, calls of reasoners are not: whoever reaches this port can start runs of this agent and cancel
 * those that go on. Let nobody but the control plane reach it.
 *
 * A promise that nobody awaits and that rejects with the end of a run (`RunEnded`) does not end the process while it
 * serves; any other one does, as always.
 *
 * @param agent that is served.
 * @param options where and how.
 * @returns once it listens and has tried to register. Rejects when it cannot listen.
 */
export async function serve(agent: Agent, options: ServeOptions = {}): Promise<Served> {
  const { port = 8001, host = "127.0.0.1", drainSeconds, signals = true } = options;
  const server = createServer((request, response) => void answer(agent, request, response));
  const address = await listening(server, port, host);
  const url = addressSeenFrom(agent, address);
  if (url !== undefined) agent.reachableAt(url);
  const passing = letEndsPass();
  let stopping: Promise<void> | undefined;
  let stopped!: () => void;
  const over = new Promise<void>((resolve) => {
    stopped = resolve;
  });
  const stop = (): Promise<void> => {
    for (const signal of STOP_SIGNALS) process.removeListener(signal, stop);
    stopping ??= ended(agent, server, drainSeconds).finally(() => {
      passing();
      stopped();
    });
    return stopping;
  };
  if (signals) for (const signal of STOP_SIGNALS) process.on(signal, stop);
  await agent.start();
  return { port: address.port, stopped: over, stop };
}

async function answer(agent: Agent, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    await respond(request, response, await agent.handler(requestOf(request)));
  } catch {
    // The caller went away, or sent what is no request.
    response.destroy();
  }
}

async function ended(agent: Agent, server: Server, drainSeconds: number | undefined): Promise<void> {
  // It is reached until the end: what runs may still be cancelled.
  await agent.stop({ drainSeconds });
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  server.closeAllConnections();
  await closed;
}

function listening(server: Server, port: number, host: string): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.removeListener("error", reject);
      resolve(server.address() as AddressInfo);
    });
  });
}

/** The agent's address, where that is the same for a control plane on this machine. */
function addressSeenFrom(agent: Agent, { address, family, port }: AddressInfo): string | undefined {
  const six = family === "IPv6";
  const any = address === "0.0.0.0" || address === "::";
  const host = any ? (six ? "::1" : "127.0.0.1") : address;
  const url = `http://${six ? `[${host}]` : host}:${port}`;
  return isHere(url) && isHere(agent.controlPlaneURL) ? url : undefined;
}
