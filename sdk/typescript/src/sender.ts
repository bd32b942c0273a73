/** Sends calls until they are answered: the one place where the clock and the dice of the retries are read. */

import { judge, readReply, replyWithin, PATIENCE_MS, type Call, type Sender, type SendOptions } from "./core.js";
import { warn } from "./log.js";
import { keyOf, originOf, warnIfReadable } from "./origin.js";
import { deadline, sleep } from "./timers.js";
import { checkedHeaders, Transport, type Fetch } from "./transport.js";
import { VERSION } from "./version.js";

const WARN_EVERY = 8;

/** Where to send, and how. */
export interface SenderOptions {
  /** Of the control plane; HOLDSHORT_URL, or http://127.0.0.1:8080, when absent. */
  baseURL?: string | undefined;
  /** HOLDSHORT_API_KEY when absent. */
  apiKey?: string | undefined;
  /** Sent with every request, for whatever stands between. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Sends instead of the global `fetch`. */
  fetch?: Fetch | undefined;
  /** Milliseconds to go on trying a call, 30,000 when absent; null for as long as it takes. */
  patienceMs?: number | null | undefined;
}

/** Sends to one control plane. */
export class HttpSender implements Sender {
  /** Milliseconds that a call is tried for, unless it says otherwise; null for as long as it takes. */
  readonly patienceMs: number | null;
  readonly #transport: Transport;

  /**
   * Throws `ConnectionFailed` for what is no address, `KeyRefused` for what is no key and `InvalidField` for what is
   * no header.
   */
  constructor(options: SenderOptions = {}) {
    const url = originOf(options.baseURL);
    const key = keyOf(options.apiKey);
    warnIfReadable(url, key);
    const own = { "user-agent": `holdshort-typescript/${VERSION}`, ...checkedHeaders(options.headers ?? {}) };
    const headers = key ? { ...own, authorization: `Bearer ${key}` } : own;
    this.patienceMs = options.patienceMs === undefined ? PATIENCE_MS : options.patienceMs;
    this.#transport = new Transport(url, headers, options.fetch);
  }

  async send<T>(call: Call<T>, options: SendOptions = {}): Promise<T> {
    const { patienceMs = this.patienceMs, signal } = options;
    signal?.throwIfAborted();
    const checked = call.headers ? { ...call, headers: checkedHeaders(call.headers) } : call;
    const until = deadline(patienceMs);
    for (let tries = 1; ; tries += 1) {
      const outcome = await this.#transport.exchange(checked, replyWithin(until.left()), signal);
      const verdict = judge(call, outcome, tries, until.left(), Math.random());
      if (!("delayMs" in verdict)) return readReply(call, verdict);
      if (tries % WARN_EVERY === 0) {
        const said = outcome instanceof Error ? outcome.message : outcome.status;
        warn(`still trying ${call.method} ${call.path} after ${tries} times: ${said}`);
      }
      await sleep(verdict.delayMs, signal);
    }
  }
}
