// What a driver's client does, by the names that all drivers share.

import { ApprovalClient, type HumanFeedbackOptions, type RequestApprovalPayload } from "../src/index.js";
import { type Scheme, signWebhook, verifyWebhook, type WebhookHeaders } from "../src/webhooks.js";
import { type Args, FEEDBACK, formOf, milliseconds, named, type Op, QUESTION, text, toldResult } from "./told.js";

/**
 * The ops of a client; one of its own is made for each `api_key` and `node_id` that ops name.
 *
 * @param nodeId which executions are created for.
 */
export function clientOps(nodeId: string): Record<string, Op> {
  const clients = new Map<string, ApprovalClient>();
  const clientOf = (args: Args): ApprovalClient => {
    const named = { apiKey: maybeText(args, "api_key"), nodeId: maybeText(args, "node_id") };
    const key = JSON.stringify([named.apiKey ?? null, named.nodeId ?? null]);
    const client = clients.get(key) ?? new ApprovalClient(named);
    clients.set(key, client);
    return client;
  };
  return {
    create_execution: (args) => createExecution(clientOf(args), nodeId, args),
    request_approval: (args) => requestApproval(clientOf(args), args),
    get_approval_status: (args, signal) => getApprovalStatus(clientOf(args), args, signal),
    wait_for_approval: (args, signal) => waitForApproval(clientOf(args), args, signal),
    withdraw: async (args) => ({ status: (await clientOf(args).withdraw(text(args, "approval_id"))).status }),
    human_feedback: (args, signal) => {
      const options = { ...named(args, FEEDBACK), signal } as HumanFeedbackOptions;
      return clientOf(args).humanFeedback(text(args, "message"), options);
    },
    verify_webhook: verified,
    sign_webhook: signed,
  };
}

async function createExecution(client: ApprovalClient, nodeId: string, args: Args): Promise<unknown> {
  const made = await client.createExecution(text(args, "execution_id"), { nodeId });
  return { execution_id: made.executionId, status: made.status };
}

async function requestApproval(client: ApprovalClient, args: Args): Promise<unknown> {
  const question = { ...named(args, QUESTION), form: formOf(args["form"]) } as unknown as RequestApprovalPayload;
  const asked = await client.requestApproval(text(args, "execution_id"), question);
  return {
    approval_id: asked.approvalId,
    round: asked.round,
    status: asked.status,
    approval_request_url: asked.approvalRequestUrl,
    payload_digest: asked.payloadDigest,
  };
}

async function getApprovalStatus(client: ApprovalClient, args: Args, signal: AbortSignal): Promise<unknown> {
  const which = named(args, { approval_request_id: "approvalRequestId", wait_seconds: "waitSeconds" });
  const found = await client.getApprovalStatus(text(args, "execution_id"), { ...which, signal });
  return { status: found.status, round: found.round, approval_id: found.approvalId, response: found.response };
}

async function waitForApproval(client: ApprovalClient, args: Args, signal: AbortSignal): Promise<unknown> {
  const which = named(args, { approval_request_id: "approvalRequestId" });
  const timeoutMs = milliseconds(args, "timeout_seconds");
  return toldResult(await client.waitForApproval(text(args, "execution_id"), { ...which, timeoutMs, signal }));
}

async function verified(args: Args): Promise<unknown> {
  const body = new TextEncoder().encode(text(args, "body"));
  const now = args["now"] as number;
  const found = await verifyWebhook(args["headers"] as WebhookHeaders, body, args["secrets"] as string[], { now });
  return { scheme: found.scheme, webhook_id: found.webhookId };
}

async function signed(args: Args): Promise<unknown> {
  const body = new TextEncoder().encode(text(args, "body"));
  const webhookId = typeof args["webhook_id"] === "string" ? { webhookId: args["webhook_id"] } : {};
  const options = { scheme: args["scheme"] as Scheme, now: args["now"] as number, ...webhookId };
  return await signWebhook(text(args, "secret"), body, options);
}

function maybeText(args: Args, name: string): string | undefined {
  const value = args[name];
  return typeof value === "string" ? value : undefined;
}
