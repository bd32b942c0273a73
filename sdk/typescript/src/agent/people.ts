// What an agent's code asks of people: whose question it is, under which round, and what comes back.

import { humanFeedback } from "../feedback.js";
import type { ApprovalResult } from "../result.js";
import type { RequestApprovalPayload } from "../routes.js";
import { deadline } from "../timers.js";
import { type Asker, type Manner, Outsider, pause, resume, stopIfCancelled } from "./asking.js";
import { find } from "./finding.js";
import { checkForm, fitting, formOf, worded } from "./forms.js";
import type { AskOptions, FeedbackOptions, PauseOptions, ResumeOptions } from "./options.js";
import type { Runner } from "./runner.js";
import type { Scope } from "./scopes.js";
import { linked } from "./signals.js";

/** Ask for a decision and wait for it. Id and round are taken here and now: the order of the calls counts. */
export async function pauseFrom(
  runner: Runner,
  scope: Scope | undefined,
  options: PauseOptions,
): Promise<ApprovalResult> {
  if (options.form !== undefined) checkForm(options.form);
  const { rounds, executionId, state } = runner.asking(scope, options.executionId);
  const made = options.approvalRequestId === undefined ? rounds.madeId(nameOf(scope)) : undefined;
  const approvalRequestId = options.approvalRequestId ?? made?.id ?? "";
  const key = rounds.next(executionId, approvalRequestId);
  const asked = (asker: Asker, manner: Manner) => pause(asker, key, questionOf(approvalRequestId, options), manner);
  try {
    const manner = mannerOf(runner, options);
    const result = await (state === undefined
      ? asked(new Outsider(runner.session), manner)
      : state.waiting(() => linked([state.stopped, manner.signal], (signal) => asked(state, { ...manner, signal }))));
    return fitting(options.form, result);
  } catch (error) {
    // Without an answer it does not count, so that trying again asks the same.
    rounds.giveBack(key);
    made?.giveBack();
    throw error;
  }
}

/** Ask a question with an answer and wait for it. */
export async function askFrom(
  runner: Runner,
  scope: Scope | undefined,
  question: string,
  options: AskOptions,
): Promise<ApprovalResult> {
  const { approvalRequestId, expiresInHours, timeoutMs, onExpiry, executionId, signal, description } = options;
  const asked = { approvalRequestId, expiresInHours, timeoutMs, onExpiry, executionId, signal };
  return await pauseFrom(runner, scope, { ...asked, ...worded(question, description), form: formOf(options) });
}

/** Wait for a question that was asked before, perhaps by a process that is gone. */
export async function resumeFrom(
  runner: Runner,
  scope: Scope | undefined,
  approvalRequestId: string,
  options: ResumeOptions,
): Promise<ApprovalResult> {
  const manner = mannerOf(runner, options);
  const state = scope?.state;
  const executionId = options.executionId ?? state?.executionId;
  const wanted = { nodeId: runner.nodeId, approvalRequestId, executionId };
  const result = await linked([state?.stopped, manner.signal], async (signal) => {
    const standing = await find(runner.session, wanted, manner.until, signal);
    const told = { ...manner, signal };
    if (state === undefined || state.executionId !== standing.executionId) {
      return await resume(new Outsider(runner.session), standing, told);
    }
    return await state.waiting(async () => {
      const resumed = await resume(state, standing, told);
      await stopIfCancelled(state, resumed, signal);
      return resumed;
    });
  });
  return fitting(options.form, result);
}

/** Ask for what leaves no trace, and wait. */
export async function feedbackFrom(
  runner: Runner,
  scope: Scope | undefined,
  message: string,
  options: FeedbackOptions,
): Promise<string> {
  const { sender } = runner.session;
  if (scope === undefined) return await humanFeedback(sender, message, options);
  const { state } = scope;
  const { executionId } = state;
  return await state.waiting(async () => {
    const answer = await linked([state.stopped, options.signal], (signal) =>
      humanFeedback(sender, message, { ...options, executionId, signal }),
    );
    // A yes must not wake code that was taken over while it waited.
    await state.sure();
    return answer;
  });
}

function mannerOf(
  runner: Runner,
  options: { timeoutMs?: number | undefined; signal?: AbortSignal | undefined },
): Manner {
  return { callbackURL: runner.callbackTarget(), until: deadline(options.timeoutMs), signal: options.signal };
}

/** From what the id of a question is made that has none. */
function nameOf(scope: Scope | undefined): string {
  if (scope === undefined) return "outside";
  const { state, branch } = scope;
  return branch === "" ? state.reasoner : `${state.reasoner}/${branch}`;
}

function questionOf(approvalRequestId: string, options: PauseOptions): RequestApprovalPayload {
  const { approvalRequestUrl, expiresInHours, title, description, payload, onExpiry, decidedBy, form } = options;
  const said = { approvalRequestUrl, expiresInHours, title, description, payload, onExpiry, decidedBy, form };
  return { approvalRequestId, ...said };
}
