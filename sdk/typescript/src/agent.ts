/** Agents: programs whose functions pause for people, and go on where they were when they are started again. */

export { HoldshortError, RunEnded, StepsSideBySide } from "./errors.js";
export type { ApprovalResult } from "./result.js";
export type { Form, OnExpiry } from "./wire.js";
export { Agent, type AgentOptions } from "./agent/agent.js";
export { ExecutionTimedOut } from "./agent/ends.js";
export type { AskKind } from "./agent/forms.js";
export type { Log } from "./agent/log.js";
export type {
  AskOptions,
  FeedbackOptions,
  PauseOptions,
  QuestionOptions,
  ResumeOptions,
  WaitOptions,
} from "./agent/options.js";
export type { ReasonerFunction, ReasonerOptions, Resume } from "./agent/reasoners.js";
export type { Run } from "./agent/run.js";
export type { Callback } from "./agent/runner.js";
