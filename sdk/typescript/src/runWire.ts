/** What the control plane says of executions, their steps, and the nodes that run them. */

import { Members, textIn } from "./members.js";

/** How an execution stands; a later control plane may know more words. */
export type ExecutionState =
  | "queued"
  | "running"
  | "waiting"
  | "succeeded"
  | "failed"
  | "cancelled"
  | "timeout"
  | (string & {});

const FINAL: ReadonlySet<string> = new Set(["succeeded", "failed", "cancelled", "timeout"]);
const ENDED_BY_APPROVAL = /^approval_(?:rejected|expired)/;

/**
 * One run of an agent's function.
 *
 * Of a run that the control plane gave to an agent (`dispatched`): `fence` counts how often, `instanceId` is who has
 * it, `attempts` and `lastError` are those of giving it away now, and `outcomePending` says that its code has not
 * seen yet how it ended.
 */
export interface Execution {
  executionId: string;
  nodeId: string;
  status: ExecutionState;
  /** True when the status will not change any more. */
  final: boolean;
  /** True when a rejection or an expiry cancelled it: its code may still clean up and report. */
  endedByApproval: boolean;
  statusReason: string | null;
  runId: string | null;
  parentExecutionId: string | null;
  reasoner: string | null;
  pendingApprovals: number;
  input: unknown;
  result: unknown;
  error: unknown;
  createdAt: string | null;
  startedAt: string | null;
  updatedAt: string | null;
  endedAt: string | null;
  dispatched: boolean;
  fence: number;
  instanceId: string | null;
  outcomePending: boolean;
  attempts: number;
  lastError: string | null;
}

/** One page of executions; `nextCursor` is null on the last one. */
export interface ExecutionPage {
  executions: Execution[];
  nextCursor: string | null;
}

/** A run that an agent is being found for. */
export interface Queued {
  executionId: string;
  status: ExecutionState;
  runId: string | null;
  target: string | null;
  createdAt: string | null;
}

/** A run as it stood when a call that waited for its end was answered. */
export interface Executed {
  executionId: string;
  status: ExecutionState;
  /** True when it is over. */
  final: boolean;
}

/** What a run did once: `result` is its JSON, `previous` the place that it stands at, `position` counts from 1. */
export interface Step {
  name: string;
  occurrence: number;
  position: number;
  previous: string | null;
  result: unknown;
  at: string | null;
}

/** One page of a run's steps in the order they were stored; `nextAfter` is null on the last one. */
export interface StepPage {
  steps: Step[];
  nextAfter: number | null;
}

/** The answer to a registration: how long the instance counts as alive, and how often it should say so. */
export interface Registered {
  leaseSeconds: number;
  heartbeatSeconds: number;
}

/** The answer to a heartbeat. */
export interface Beaten {
  leaseSeconds: number;
}

/** Those of the runs that were the instance's, and are nobody's now. */
export interface HandedBackRuns {
  handedBack: string[];
}

/** True when this is how a rejection or an expiry ends an execution. */
export function endedByApproval(status: string | null, statusReason: string | null): boolean {
  return status === "cancelled" && ENDED_BY_APPROVAL.test(statusReason ?? "");
}

/** Reads an {@link Execution}. */
export function readExecution(value: unknown): Execution {
  const from = new Members(value);
  const status = from.text("status");
  const statusReason = from.maybeText("status_reason");
  return {
    executionId: from.text("execution_id"),
    nodeId: from.text("node_id"),
    status,
    final: FINAL.has(status),
    endedByApproval: endedByApproval(status, statusReason),
    statusReason,
    runId: from.maybeText("run_id"),
    parentExecutionId: from.maybeText("parent_execution_id"),
    reasoner: from.maybeText("reasoner"),
    pendingApprovals: from.maybeNumber("pending_approvals") ?? 0,
    input: from.any("input"),
    result: from.any("result"),
    error: from.any("error"),
    createdAt: from.maybeText("created_at"),
    startedAt: from.maybeText("started_at"),
    updatedAt: from.maybeText("updated_at"),
    endedAt: from.maybeText("ended_at"),
    dispatched: from.flag("dispatched"),
    fence: from.maybeNumber("fence") ?? 0,
    instanceId: from.maybeText("instance_id"),
    outcomePending: from.flag("outcome_pending"),
    attempts: from.maybeNumber("attempts") ?? 0,
    lastError: from.maybeText("last_error"),
  };
}

/** Reads an {@link ExecutionPage}. */
export function readExecutionPage(value: unknown): ExecutionPage {
  const from = new Members(value);
  return { executions: from.list("executions", readExecution), nextCursor: from.maybeText("next_cursor") };
}

/** Reads a {@link Queued}. */
export function readQueued(value: unknown): Queued {
  const from = new Members(value);
  return {
    executionId: from.text("execution_id"),
    status: from.text("status"),
    runId: from.maybeText("run_id"),
    target: from.maybeText("target"),
    createdAt: from.maybeText("created_at"),
  };
}

/** Reads an {@link Executed}. */
export function readExecuted(value: unknown): Executed {
  const from = new Members(value);
  const status = from.text("status");
  return { executionId: from.text("execution_id"), status, final: FINAL.has(status) };
}

/** Reads a {@link Step}. */
export function readStep(value: unknown): Step {
  const from = new Members(value);
  return {
    name: from.text("name"),
    occurrence: from.number("occurrence"),
    position: from.number("position"),
    previous: from.maybeText("previous"),
    result: from.any("result"),
    at: from.maybeText("at"),
  };
}

/** Reads a {@link StepPage}. */
export function readStepPage(value: unknown): StepPage {
  const from = new Members(value);
  return { steps: from.list("steps", readStep), nextAfter: from.maybeNumber("next_after") };
}

/** Reads a {@link Registered}; what is not said is 15 and 5 s. */
export function readRegistered(value: unknown): Registered {
  const from = new Members(value);
  return {
    leaseSeconds: from.maybeNumber("lease_seconds") ?? 15,
    heartbeatSeconds: from.maybeNumber("heartbeat_seconds") ?? 5,
  };
}

/** Reads a {@link Beaten}; what is not said is 15 s. */
export function readBeaten(value: unknown): Beaten {
  return { leaseSeconds: new Members(value).maybeNumber("lease_seconds") ?? 15 };
}

/** Reads {@link HandedBackRuns}. */
export function readHandedBack(value: unknown): HandedBackRuns {
  return { handedBack: new Members(value).list("handed_back", textIn) };
}
