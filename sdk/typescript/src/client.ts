/** The control plane for programs that are no agent: one method a route. */

import { execute, type ExecuteOptions } from "./calling.js";
import { invalid, type Call, type Sender, type SendOptions } from "./core.js";
import { humanFeedback, type HumanFeedbackOptions } from "./feedback.js";
import type { ApprovalResult } from "./result.js";
import * as routes from "./routes.js";
import { HttpSender, type SenderOptions } from "./sender.js";
import { waitForApproval } from "./waiting.js";
import type * as wire from "./wire.js";

/** Where the control plane is, and who calls it. */
export interface ApprovalClientOptions extends SenderOptions {
  /** The agent whose approvals this client asks and reads; without one, whatever the key may see. */
  nodeId?: string | undefined;
}

/** Picks an approval of an execution, and says how long to wait for its end. */
export interface ApprovalStatusOptions extends SendOptions {
  /** Picks one of the execution's questions; its newest when absent. */
  approvalRequestId?: string | undefined;
  /** 0-60 s to hold the call until the approval is final. */
  waitSeconds?: number | undefined;
}

/** Which approval to wait for, and how long. */
export interface WaitForApprovalOptions {
  /** Picks one of the execution's questions; its newest when absent. */
  approvalRequestId?: string | undefined;
  /** Milliseconds to wait, also more than 2^31 (24.8 days); as long as it takes when absent. */
  timeoutMs?: number | undefined;
  /** Ends the wait at once; the promise rejects with the signal's reason, and the approval stays pending. */
  signal?: AbortSignal | undefined;
  /** Without effect: a held call is answered as soon as there is a decision. */
  pollIntervalMs?: number | undefined;
  /** Without effect, as `pollIntervalMs`. */
  maxIntervalMs?: number | undefined;
}

/** What an execution is started with, and how the call is sent. */
export interface CreateExecutionOptions extends routes.NewExecution, SendOptions {
  /** The agent it belongs to; the client's own when absent. */
  nodeId?: string | undefined;
}

/**
 * The control plane's routes for programs that are no agent.
 *
 * Every call is repeated through connection failures, 429, 502, 503 and 504 for `patienceMs` (30 s). Redirects are not
 * followed, so the key goes nowhere else. Each method rejects with a `HoldshortError` when the control plane refuses
 * (see the classes of `Refused`) or is not reached in time (`ConnectionFailed`), and with the reason of the `signal`
 * that its options may carry, at once when that is aborted. There is nothing to close.
 */
export class ApprovalClient implements Sender {
  readonly #sender: HttpSender;
  readonly #nodeId: string | undefined;

  /**
   * @param options HOLDSHORT_URL and HOLDSHORT_API_KEY say what they do not. Throws `ConnectionFailed` for what is no
   *   address, `KeyRefused` for what is no key and `InvalidField` for what is no header; no message shows their values.
   */
  constructor(options: ApprovalClientOptions = {}) {
    this.#sender = new HttpSender(options);
    this.#nodeId = options.nodeId;
  }

  /** Send a call of one's own until it is answered, see {@link Sender.send}. */
  send<T>(call: Call<T>, options?: SendOptions): Promise<T> {
    return this.#sender.send(call, options);
  }

  /**
   * Ask, or ask again: what stands under the id and round is returned. It does not wait for the decision.
   *
   * Rejects with `ExecutionFinished` when it would open something new on a run that is over, `RoundNotOpen` when the
   * round before is pending or ended for good, `RequestConflict` when the id and round stand for another payload, form
   * or onExpiry, `InvalidField` when a field breaks a rule.
   *
   * @param executionId the execution that asks
   * @param payload what is asked
   */
  async requestApproval(
    executionId: string,
    payload: routes.RequestApprovalPayload,
    options?: SendOptions,
  ): Promise<wire.Asked> {
    return this.send(routes.requestApproval(executionId, payload, this.#nodeId), options);
  }

  /** How an approval of an execution stands. Rejects with `NotFound` when the execution has not asked that. */
  async getApprovalStatus(executionId: string, options: ApprovalStatusOptions = {}): Promise<wire.ApprovalStatus> {
    const { approvalRequestId, waitSeconds } = options;
    return this.send(
      routes.getApprovalStatus(executionId, { approvalRequestId, waitSeconds, nodeId: this.#nodeId }),
      options,
    );
  }

  /**
   * Wait for the decision of an approval that was asked: hours or weeks, through restarts of the control plane.
   *
   * It is looked up once; what is waited for then is that approval, also when other questions are asked meanwhile.
   *
   * @returns what was decided; look at `approved` or `decision`, as the object itself is true whatever it says. Rejects
   *   with `WaitTimeout` when the time is up (the approval stays pending and can be waited for again), `NotFound` when
   *   the execution has not asked that, `ConnectionFailed` when the time was up before the control plane could say how
   *   it stands
   */
  async waitForApproval(executionId: string, options: WaitForApprovalOptions = {}): Promise<ApprovalResult> {
    return waitForApproval(this.#sender, executionId, { ...options, nodeId: this.#nodeId });
  }

  /** Take a question back; what stands is returned, of a final approval the answer it has. */
  async withdraw(approvalId: string, options?: SendOptions): Promise<wire.Approval> {
    return this.send(routes.withdraw(approvalId), options);
  }

  /** End a question's time now, as the asking node; what stands is returned, of a final approval the answer it has. */
  async expire(approvalId: string, options?: SendOptions): Promise<wire.Approval> {
    return this.send(routes.expire(approvalId), options);
  }

  /**
   * Decide one approval as a person or operator.
   *
   * Rejects with `AlreadyDecided` when another decision was first, `ApprovalChanged` when another digest or round
   * stands than the one named, `BadRequest` when the decision is no known word, `InvalidAnswer` when the values do not
   * fit the form; nothing was decided then.
   */
  async decide(approvalId: string, verdict: routes.Verdict, options?: SendOptions): Promise<wire.Decided> {
    return this.send(routes.decide(approvalId, verdict), options);
  }

  /**
   * Decide the pending approval of an execution; `approvalRequestId` names it when several are pending.
   *
   * Rejects as {@link decide} does, and with `AmbiguousRequestId` when several are pending and none is named.
   */
  async answerExecution(
    executionId: string,
    verdict: routes.Verdict,
    options: SendOptions & { approvalRequestId?: string | undefined } = {},
  ): Promise<wire.Decided> {
    return this.send(routes.answerExecution(executionId, verdict, options.approvalRequestId), options);
  }

  /** One approval with its history. Rejects with `NotFound` when no approval has this id. */
  async getApproval(approvalId: string, options?: SendOptions): Promise<wire.Approval> {
    return this.send(routes.getApproval(approvalId), options);
  }

  /** A page of approvals. */
  async listApprovals(which: routes.ApprovalFilter = {}, options?: SendOptions): Promise<wire.ApprovalPage> {
    return this.send(routes.listApprovals(which), options);
  }

  /**
   * Post a signed decision, as its sender; `signWebhook` makes the headers.
   *
   * @param body exactly what was signed; it is sent as it is
   * @param headers with the signature
   * @returns what became of it, as the control plane words it; rejects with `NotAuthorised` when the signature is
   *   missing, wrong or stale, `Conflict` when the answer could be meant for several approvals, or for a round not
   *   asked yet
   */
  async sendWebhook(body: string, headers: Readonly<Record<string, string>>, options?: SendOptions): Promise<unknown> {
    return this.send(routes.sendWebhook(body, headers), options);
  }

  /**
   * Start an execution, or find it: the same id again returns it as it stands.
   *
   * @param executionId 1-128 of `A-Z a-z 0-9 . _ ~ : -`, chosen by the caller, so that a retry cannot start two
   * @returns the execution; rejects with `ExecutionExists` when another node owns this id, with `InvalidField` when
   *   neither the options nor the client name a node
   */
  async createExecution(executionId: string, options: CreateExecutionOptions = {}): Promise<wire.Execution> {
    const nodeId = options.nodeId ?? this.#nodeId;
    if (!nodeId) throw invalid("nodeId", "must be given here or to the client");
    return this.send(routes.createExecution(nodeId, executionId, options), options);
  }

  /** One execution as it stands. Rejects with `NotFound` when no execution has this id. */
  async getExecution(executionId: string, options?: SendOptions): Promise<wire.Execution> {
    return this.send(routes.getExecution(executionId), options);
  }

  /** A page of executions. */
  async listExecutions(which: routes.ExecutionFilter = {}, options?: SendOptions): Promise<wire.ExecutionPage> {
    return this.send(routes.listExecutions(which), options);
  }

  /** Cancel a run as an operator; what it asked is withdrawn. */
  async cancelExecution(
    executionId: string,
    options: SendOptions & { reason?: string | undefined } = {},
  ): Promise<wire.Execution> {
    return this.send(routes.cancelExecution(executionId, options.reason), options);
  }

  /**
   * Let a node run a reasoner and wait for its end, through restarts of the control plane and of the agent.
   *
   * @param nodeId the agent
   * @param reasoner its function's name
   * @param input JSON, an object with the function's arguments
   * @returns the run, over (`final`) or as it stands when the time is up; it goes on then, and can be waited for again
   *   under the same key. Rejects with `NotFound` when no such node is registered or it has no such reasoner
   *   (`details.registered` lists what there is), `IdempotencyConflict` when the key stands for another call,
   *   `Unavailable` when too many runs wait for this node already
   */
  async execute(
    nodeId: string,
    reasoner: string,
    input: unknown = {},
    options: ExecuteOptions = {},
  ): Promise<wire.Execution> {
    return execute(this.#sender, nodeId, reasoner, input, options);
  }

  /** Let a node run a reasoner, and do not wait for it. Rejects as {@link execute} does. */
  async executeAsync(
    nodeId: string,
    reasoner: string,
    input: unknown = {},
    options: SendOptions & { idempotencyKey?: string | undefined } = {},
  ): Promise<wire.Queued> {
    const key = options.idempotencyKey ?? routes.newKey();
    return this.send(routes.executeAsync(nodeId, reasoner, input, key), options);
  }

  /**
   * Ask a person for what only they can give, a one-time code or a yes, and wait: seconds to half an hour.
   *
   * The key that opens the answer is made here for this one question, so the answer is nowhere but in what this
   * returns: keep it out of logs, results and steps. Restarts of the control plane are not noticed. A caller that is
   * aborted withdraws the question, for which it takes 2 s at most; of one that is gone it is withdrawn after 15 s.
   *
   * @param message the question, 1-4,000 characters
   * @returns the text; for yes_no `yes` or `no`, for multiple_choice the option. Rejects with `InvalidField` when a
   *   field breaks its rule and nothing was asked, `FeedbackExpired` when nobody answered in time, which is never an
   *   approval, `FeedbackCancelled` when the question was withdrawn, `DuplicateRequest` when another call asks under
   *   this id, `RequestIdUsed` when a question under it ended within the last hour, `ConnectionFailed` when the control
   *   plane was not reached and nothing was answered
   */
  async humanFeedback(message: string, options: HumanFeedbackOptions = {}): Promise<string> {
    return humanFeedback(this.#sender, message, options);
  }

  /**
   * Answer a short-lived question as a person.
   *
   * Rejects with `InvalidAnswer` when it is empty, none of the options, or neither a yes nor a no (the question stays
   * open), `AlreadyAnswered` when another answer was first, `FeedbackExpired` when the time is up, `FeedbackCancelled`
   * when nobody waits for the answer any more, `NotFound` when no question has this id.
   *
   * @param response the answer, at most 16 KiB: text, one of the options, or a yes or a no
   * @param options `submissionId`: the same again is the same answer, so it can be sent again when its reply was lost
   */
  async submitFeedback(
    uniqueId: string,
    response: string,
    options: SendOptions & { submissionId?: string | undefined } = {},
  ): Promise<routes.Submitted> {
    return this.send(routes.submitFeedback(uniqueId, response, options.submissionId), options);
  }

  /** The short-lived questions that wait for a person, oldest first; never an answer. */
  async pendingFeedback(options?: SendOptions): Promise<routes.FeedbackPage> {
    return this.send(routes.pendingFeedback(), options);
  }
}
