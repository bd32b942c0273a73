/** The secrets that webhooks are verified with, as one setting names them. */

import { withoutSpace } from "./space.js";

// A base64 secret may end in "=", so only a colon separates, and only after a plain lower-case name.
const NAMED = /^([a-z][a-z0-9-]{0,31}):([^]*)$/;
const WHSEC = "whsec_";

/** One sender's secret. */
export interface WebhookSecret {
  /** The sender's name, "" for a secret without a name. */
  readonly sender: string;
  /** The text as configured, which `verifyWebhook` and `signWebhook` make keys of. */
  readonly secret: string;
}

/**
 * The secrets in a setting such as HOLDSHORT_WEBHOOK_SECRETS: comma-separated entries `secret` or `name:secret`.
 *
 * @param setting the newest first; "" means that none is configured.
 * @returns the entries in their order.
 * @throws {RangeError} an entry or a secret is empty, or is no Unicode text; the message says which and shows none.
 */
export function parseSecrets(setting: string): WebhookSecret[] {
  return setting === "" ? [] : setting.split(",").map((entry) => parsed(withoutSpace(entry)));
}

function parsed(entry: string): WebhookSecret {
  if (entry === "") throw new RangeError("empty entry");
  const named = NAMED.exec(entry);
  const sender = named?.[1] ?? "";
  const secret = withoutSpace(named?.[2] ?? entry);
  if (secret === "" || secret === WHSEC) throw new RangeError("empty secret");
  if (/\p{Surrogate}/u.test(secret)) throw new RangeError("a secret is not UTF-8 text");
  return { sender, secret };
}
