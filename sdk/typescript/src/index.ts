/**
 * The client of Holdshort's control plane, and what it answers.
 *
 * Agents are in `@holdshort/sdk/agent`, what serves them in `@holdshort/sdk/node`, signed decisions in
 * `@holdshort/sdk/webhooks`.
 */

export type { ExecuteOptions } from "./calling.js";
export type { FeedbackKind } from "./choices.js";
export {
  ApprovalClient,
  type ApprovalClientOptions,
  type ApprovalStatusOptions,
  type CreateExecutionOptions,
  type WaitForApprovalOptions,
} from "./client.js";
export type { Call, Sender, SendOptions } from "./core.js";
export * from "./errors.js";
export { uniqueId, type HumanFeedbackOptions } from "./feedback.js";
export type { ApprovalResult, ResultWith } from "./result.js";
export type {
  ApprovalFilter,
  ExecutionFilter,
  FeedbackPage,
  FeedbackQuestion,
  NewExecution,
  RequestApprovalPayload,
  Submitted,
  Verdict,
} from "./routes.js";
export { signWebhook, verifyWebhook, type SignOptions, type Verified } from "./webhooks.js";
export type { SenderOptions } from "./sender.js";
export type { Fetch } from "./transport.js";
export type {
  Answer,
  Approval,
  ApprovalPage,
  ApprovalState,
  ApprovalStatus,
  Asked,
  Decided,
  Decision,
  Execution,
  ExecutionPage,
  ExecutionState,
  Form,
  HistoryEntry,
  OnExpiry,
  Queued,
} from "./wire.js";
