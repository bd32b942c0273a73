// An agent in a process of its own: the conformance driver, which performs what its input says.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import type { Plane } from "./plane.js";

const DRIVER = fileURLToPath(new URL("../../conformance/driver.js", import.meta.url));

/** A driver, ready. */
export class Child {
  readonly url: string;
  readonly #process: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  private constructor(url: string, child: ChildProcess) {
    this.url = url;
    this.#process = child;
    if (child.stdout === null) throw new Error("the driver has no output");
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  }

  /** Starts one that is registered; it is killed when the test has ended. */
  static async start(context: TestContext, plane: Plane): Promise<Child> {
    const port = await freePort();
    const env = { ...process.env, HOLDSHORT_URL: plane.url, NODE: "node-1", PORT: String(port), CALLBACK: "auto" };
    const child = spawn(process.execPath, [DRIVER], { env, stdio: ["pipe", "pipe", "ignore"] });
    context.after(() => child.kill("SIGKILL"));
    const started = new Child(`http://127.0.0.1:${port}`, child);
    await started.#line();
    return started;
  }

  /** Names of the steps that were done in it. */
  async journal(): Promise<string[]> {
    this.#process.stdin?.write('{"id":1,"op":"journal"}\n');
    return ((await this.#line()) as { ok: string[] }).ok;
  }

  /** End it by a signal, and return when it is gone; its exit code, null when it was killed. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    const gone = once(this.#process, "exit") as Promise<[number | null]>;
    this.#process.kill(signal);
    return (await gone)[0];
  }

  async #line(): Promise<unknown> {
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error("the driver has ended");
    return JSON.parse(value);
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
