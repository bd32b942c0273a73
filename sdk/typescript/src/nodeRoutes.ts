/** The routes of nodes and of the runs that are given to them, one function each: arguments in, a Call out. */

import { apiPath, invalid, jsonOf, type Call } from "./core.js";
import { asItCame } from "./members.js";
import * as wire from "./runWire.js";

const A_KEY = /^[ -~]{1,255}$/;

/** One of a node's reasoners, as it registers it. */
export interface ReasonerWords {
  name: string;
  /** How long a run of it may work, in seconds; waiting does not count. */
  timeoutSeconds?: number | undefined;
  /** "when_decided" (when absent) or "at_start". */
  resume?: string | undefined;
  /** JSON Schema of its input. */
  inputSchema?: unknown;
}

/** What a process says of itself when it comes. */
export interface Registration {
  /** The agent that it is an instance of. */
  nodeId: string;
  /** Where it is reached. */
  baseUrl: string;
  /** New for each process. */
  instanceId: string;
  /** Of the agent. */
  version: string;
  reasoners: readonly ReasonerWords[];
  /** `replay`: its runs may be started again; `fence`: it sends the fence with every call. */
  features: Readonly<Record<string, boolean>>;
  /** After so long without a sign of life it counts as gone. */
  leaseSeconds?: number | undefined;
  /** How many runs it is given at a time; the control plane's own limit when absent. */
  maxConcurrent?: number | undefined;
}

/** Register an instance of a node; the same instance again renews it. */
export function registerNode(words: Registration): Call<wire.Registered> {
  const body = jsonOf({
    node_id: words.nodeId,
    base_url: words.baseUrl,
    instance_id: words.instanceId,
    version: words.version,
    reasoners: words.reasoners.map(reasonerOf),
    features: words.features,
    lease_seconds: words.leaseSeconds,
    max_concurrent: words.maxConcurrent,
  });
  return { method: "POST", path: apiPath("nodes", "register"), body, read: wire.readRegistered };
}

function reasonerOf({ name, timeoutSeconds, resume, inputSchema }: ReasonerWords): Record<string, unknown> {
  return { name, timeout_seconds: timeoutSeconds, resume, input_schema: inputSchema };
}

/** Say that an instance is alive; "draining" says that it takes nothing new. `NotFound` says: register again. */
export function heartbeat(nodeId: string, instanceId: string, status = "ready"): Call<wire.Beaten> {
  const body = jsonOf({ instance_id: instanceId, status });
  return { method: "POST", path: apiPath("nodes", nodeId, "heartbeat"), body, read: wire.readBeaten };
}

/** A run that an instance has, with the fence it was given under. */
export interface HeldRun {
  executionId: string;
  fence: number;
}

/** Give up runs without an end, at most 1000; those of others are left out. */
export function handBack(nodeId: string, instanceId: string, runs: readonly HeldRun[]): Call<wire.HandedBackRuns> {
  const executions = runs.map(({ executionId, fence }) => ({ execution_id: executionId, fence }));
  const body = jsonOf({ instance_id: instanceId, executions });
  return { method: "POST", path: apiPath("nodes", nodeId, "hand-back"), body, read: wire.readHandedBack };
}

/** Say that an instance is gone; the runs that it has are given to others. */
export function shutdownNode(nodeId: string, instanceId: string): Call<unknown> {
  const body = jsonOf({ instance_id: instanceId });
  return { method: "POST", path: apiPath("nodes", nodeId, "shutdown"), body, read: asItCame };
}

/**
 * Let a node run a reasoner, and do not wait for it.
 *
 * @param nodeId the agent
 * @param reasoner its function's name
 * @param input JSON, an object with the function's arguments
 * @param key the same again joins the run that it started before
 */
export function executeAsync(nodeId: string, reasoner: string, input: unknown, key: string): Call<wire.Queued> {
  return {
    method: "POST",
    path: apiPath("execute", "async", `${nodeId}.${reasoner}`),
    body: jsonOf({ input }),
    headers: keyed(key),
    read: wire.readQueued,
  };
}

/** As {@link executeAsync}, held until the run is over, `waitSeconds` (0-60) at most. */
export function heldExecute(
  nodeId: string,
  reasoner: string,
  input: unknown,
  key: string,
  waitSeconds: number,
): Call<wire.Executed> {
  return {
    method: "POST",
    path: apiPath("execute", `${nodeId}.${reasoner}`),
    query: { wait: waitSeconds.toString() },
    body: jsonOf({ input }),
    headers: keyed(key),
    holdMs: 1000 * waitSeconds,
    read: wire.readExecuted,
  };
}

/** An idempotency key of a call that was given none. */
export function newKey(): string {
  return `call_${crypto.randomUUID().replaceAll("-", "")}`;
}

function keyed(key: string): Record<string, string> {
  if (!A_KEY.test(key)) throw invalid("idempotencyKey", "must be 1 to 255 printable ASCII characters");
  return { "idempotency-key": key };
}
