/** The routes of executions and what is kept with them, one function each: arguments in, a Call out. */

import { apiPath, jsonOf, type Call } from "./core.js";
import { asItCame } from "./members.js";
import * as wire from "./runWire.js";

/** What an execution is started with. */
export interface NewExecution {
  /** Name of the function it runs. */
  reasoner?: string | undefined;
  /** JSON it was called with. */
  input?: unknown;
  /** Groups executions. */
  runId?: string | undefined;
}

/**
 * Start an execution, or find it: the same id again returns it as it stands.
 *
 * @param nodeId the agent it belongs to
 * @param executionId 1-128 of `A-Z a-z 0-9 . _ ~ : -`, chosen by the caller, so that a retry cannot start two
 */
export function createExecution(
  nodeId: string,
  executionId: string,
  { reasoner, input, runId }: NewExecution = {},
): Call<wire.Execution> {
  const body = jsonOf({ node_id: nodeId, execution_id: executionId, reasoner, input, run_id: runId });
  return { method: "POST", path: apiPath("executions"), body, read: wire.readExecution };
}

/** One execution as it stands. */
export function getExecution(executionId: string): Call<wire.Execution> {
  return { method: "GET", path: apiPath("executions", executionId), read: wire.readExecution };
}

/** Which executions to list; `limit` is at most 200, `cursor` the `nextCursor` of the page before. */
export interface ExecutionFilter {
  status?: string | undefined;
  nodeId?: string | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

/** A page of executions. */
export function listExecutions(which: ExecutionFilter = {}): Call<wire.ExecutionPage> {
  const { status, nodeId, limit, cursor } = which;
  const query = { status, node_id: nodeId, limit: limit?.toString(), cursor };
  return { method: "GET", path: apiPath("executions"), query, read: wire.readExecutionPage };
}

/** How a run ended, beside its status. */
export interface Report {
  /** JSON that it returned. */
  result?: unknown;
  /** What went wrong. */
  error?: string | undefined;
  /** Up to 64 of `a-z _`; becomes the status_reason of a run that failed. */
  reason?: string | undefined;
}

/**
 * Report how a run stands; succeeded, failed, cancelled and timeout end it and withdraw what is pending.
 *
 * After a rejection or an expiry the status stays cancelled and the result is kept.
 */
export function reportStatus(executionId: string, status: string, report: Report = {}): Call<wire.Execution> {
  const { result, error, reason } = report;
  const path = apiPath("executions", executionId, "status");
  return { method: "POST", path, body: jsonOf({ status, result, error, reason }), read: wire.readExecution };
}

/** Cancel a run as an operator; what it asked is withdrawn. */
export function cancelExecution(executionId: string, reason?: string): Call<wire.Execution> {
  const path = apiPath("executions", executionId, "cancel");
  return { method: "POST", path, body: jsonOf({ reason }), read: wire.readExecution };
}

/** Keep a note with the execution; the same `noteId` again writes nothing. */
export function addNote(
  executionId: string,
  message: string,
  noteId: string,
  tags: readonly string[] = [],
): Call<unknown> {
  const path = apiPath("executions", executionId, "notes");
  return { method: "POST", path, body: jsonOf({ note_id: noteId, message, tags }), read: asItCame };
}

/** A step that is to be kept. */
export interface NewStep {
  /** 1-200 characters. */
  name: string;
  /** The how-many-eth of this name, from 1 on. */
  occurrence: number;
  /** The place in the run, up to 256 characters. */
  previous?: string | null | undefined;
  /** Any JSON up to 1 MiB; undefined is kept as null. */
  result: unknown;
}

/** Keep what a run did; under the same name and occurrence the step that is kept is returned. */
export function keepStep(executionId: string, step: NewStep): Call<wire.Step> {
  const { name, occurrence, previous = null, result = null } = step;
  const path = apiPath("executions", executionId, "steps");
  return { method: "POST", path, body: jsonOf({ name, occurrence, previous, result }), read: wire.readStep };
}

/** A page of a run's steps, behind the `nextAfter` of the page before; at most 200 and about 4 MiB of results. */
export function listSteps(executionId: string, after?: number | null, limit?: number): Call<wire.StepPage> {
  const query = { after: after?.toString(), limit: limit?.toString() };
  return { method: "GET", path: apiPath("executions", executionId, "steps"), query, read: wire.readStepPage };
}
