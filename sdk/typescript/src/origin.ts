/** Where the control plane is and which key it is told: what may be sent there, and what must never be. */

import { ConnectionFailed, KeyRefused } from "./errors.js";
import { warn } from "./log.js";

/** Where a control plane is that nobody said otherwise of. */
export const DEFAULT_URL = "http://127.0.0.1:8080";

const WEB = /^https?:\/\//i;
const A_KEY = /^[!-~]*$/;
const LOOPBACK = /^(?:127\.\d+\.\d+\.\d+|\[::1\]|localhost|.*\.localhost)$/;
const warned = new Set<string>();

/** A setting of the environment; undefined where there is none, or no environment. */
export function setting(name: string): string | undefined {
  return globalThis.process?.env[name] || undefined;
}

/**
 * The control plane's address: the argument, HOLDSHORT_URL, or this machine's port 8080; without a slash at its end.
 *
 * Throws `ConnectionFailed` when it is no http(s) address, so no try could ever reach anything, or when it holds a user
 * name or password, which would end up in logs; the message does not show it then.
 */
export function originOf(given?: string): string {
  const address = (given || setting("HOLDSHORT_URL") || DEFAULT_URL).trim().replace(/\/+$/, "");
  const url = WEB.test(address) ? parsed(address) : undefined;
  if (url && !url.username && !url.password && !url.search && !url.hash) return address;
  const shown = /[@?#]/.test(address) ? "" : `, not "${address}"`;
  throw new ConnectionFailed(
    `the control plane's address must be http://host or https://host, without a user name, query or fragment${shown}`,
  );
}

/**
 * The API key: the argument or HOLDSHORT_API_KEY, without the space around it that a file or a shell adds.
 *
 * Throws `KeyRefused` when it cannot stand in a header; nothing was sent, and the message does not show it.
 */
export function keyOf(given?: string): string | undefined {
  const key = (given || setting("HOLDSHORT_API_KEY") || "").trim();
  if (A_KEY.test(key)) return key || undefined;
  throw new KeyRefused(
    "the API key holds a space, a line break or another character that no key has; copy it again from where " +
      "`holdshort keys create` printed it",
  );
}

/** Warn, once for each host, of a key that goes over plain http to another machine: whoever listens has it. */
export function warnIfReadable(address: string, key: string | undefined): void {
  const url = parsed(address);
  if (!key || !url || url.protocol !== "http:" || isHere(address) || warned.has(url.hostname)) return;
  warned.add(url.hostname);
  warn(`the API key is sent to ${url.hostname} unencrypted, for everybody on the way to read; use https`);
}

/** Whether an address is this machine's own, which another machine would take for its own. */
export function isHere(address: string): boolean {
  return LOOPBACK.test(parsed(address)?.hostname ?? "");
}

function parsed(address: string): URL | undefined {
  try {
    return new URL(address);
  } catch {
    return undefined;
  }
}
