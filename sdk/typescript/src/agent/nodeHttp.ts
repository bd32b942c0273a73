// Requests and responses of node:http as those of the web, and back.

import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";

const LINGER_MS = 1_000;

/** What came in, as a Request. */
export function requestOf(request: IncomingMessage): Request {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(request.headersDistinct)) {
    for (const value of values) headers.append(name, value);
  }
  const method = request.method ?? "GET";
  const url = new URL(request.url ?? "/", "http://agent.invalid");
  if (method === "GET" || method === "HEAD") return new Request(url, { method, headers });
  const body = Readable.toWeb(request) as NodeStream<Uint8Array> as unknown as ReadableStream<Uint8Array>;
  return new Request(url, { method, headers, body, duplex: "half" });
}

/** Send a Response. Resolves when it is handed over. */
export async function respond(request: IncomingMessage, response: ServerResponse, answer: Response): Promise<void> {
  const content = Buffer.from(await answer.arrayBuffer());
  response.statusCode = answer.status;
  for (const [name, value] of answer.headers) response.setHeader(name, value);
  // What was not read of a request is nobody's: the connection cannot be used for another one.
  if (!request.complete) response.setHeader("connection", "close");
  await new Promise<void>((resolve) => {
    response.once("close", resolve);
    response.end(content, resolve);
  });
  if (!request.complete) linger(request);
}

/** Let the caller read the answer before what it still sends is cut off. */
function linger(request: IncomingMessage): void {
  const cut = setTimeout(() => request.destroy(), LINGER_MS);
  cut.unref();
  request.once("close", () => clearTimeout(cut));
  request.resume();
}
