/** Sign a decision for the control plane, or verify and read one that was received. */

export { payloadDigest } from "./digests.js";
export { InvalidSignature, StaleSignature } from "./errors.js";
export { type Fault, UnreadableBody, type UnreadableCode } from "./unreadable.js";
export type { Scheme } from "./webhooks/candidates.js";
export type { WebhookHeaders } from "./webhooks/headers.js";
export { type DecisionReceived, type IgnoredEvent, readDecision } from "./webhooks/reading.js";
export { parseSecrets, type WebhookSecret } from "./webhooks/secrets.js";
export {
  type SignOptions,
  signWebhook,
  standardHolds,
  TOLERANCE_SECONDS,
  type Verified,
  verifyWebhook,
} from "./webhooks/signatures.js";
export { type Decision, decisionWord } from "./webhooks/words.js";
