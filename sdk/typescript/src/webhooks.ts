/** Sign a decision for the control plane, or verify and read one that was received. */

export { parseSecrets, type WebhookSecret } from "./webhooks/secrets.js";
