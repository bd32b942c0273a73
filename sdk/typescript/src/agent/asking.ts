// How a pause asks, waits and ends: registered first, then asked, and what the server says stands.

import type { Call, SendOptions } from "../core.js";
import { Conflict, ExecutionCancelled, HandedBack, InvalidField, StaleInstance, WaitTimeout } from "../errors.js";
import { type ApprovalResult, resultOf } from "../result.js";
import { expire, getExecution, requestApproval, type RequestApprovalPayload, setCallback } from "../routes.js";
import type { Deadline } from "../timers.js";
import type { ApprovalStatus, Asked } from "../wire.js";
import type { Key, Pause } from "./pauses.js";
import type { Session } from "./session.js";
import { within } from "./signals.js";

const LAST_WORD_MS = 30_000;
const NOT_CALLED = "callback_url_refused";

/** Who asks: the run itself, or an {@link Outsider}. */
export interface Asker {
  readonly session: Session;
  /** True where the code that asks is the run's own. */
  readonly own: boolean;
  /** Send a call that is the run's own. */
  send<T>(call: Call<T>, options?: SendOptions): Promise<T>;
  /** Return once an answer may wake the code that waits. */
  sure(): Promise<void>;
}

/** How a question is asked and waited for. */
export interface Manner {
  /** Where the decision is pushed; undefined for pull only. */
  readonly callbackURL: string | undefined;
  /** When the time is up. */
  readonly until: Deadline;
  /** Ends the waiting. */
  readonly signal: AbortSignal | undefined;
}

/** Asks and waits for a run whose code is elsewhere, and knows no fence of it. */
export class Outsider implements Asker {
  readonly own = false;
  readonly session: Session;

  /** @param session of the agent. */
  constructor(session: Session) {
    this.session = session;
  }

  /** Send a call; Conflict says that only the process that has the run may. */
  async send<T>(call: Call<T>, options?: SendOptions): Promise<T> {
    try {
      return await this.session.sender.send(call, options);
    } catch (error) {
      if (!(error instanceof StaleInstance)) throw error;
      const told = "only the process that was given this run may do that, from the run's own code";
      throw new Conflict(told, error);
    }
  }

  /** Nothing can have been taken over. */
  async sure(): Promise<void> {}
}

/**
 * Ask one round of a question and wait for what becomes of it.
 *
 * @param asker whose question it is.
 * @param key names the round.
 * @param question without round and callback, which are added here.
 * @param manner how it is waited for; when the time is up the server is asked to expire it.
 */
export async function pause(
  asker: Asker,
  key: Key,
  question: RequestApprovalPayload,
  manner: Manner,
): Promise<ApprovalResult> {
  const { registry } = asker.session;
  const entry = registry.register(key);
  let result: ApprovalResult;
  try {
    const asked = await ask(asker, key, question, entry, manner);
    if (asked.final) result = resultOf(asked, key.executionId);
    else {
      entry.approvalId = asked.approvalId;
      result = (await answer(asker, entry, manner)) ?? (await expired(asker, asked.approvalId, manner.signal));
    }
    registry.resolve(result);
  } finally {
    registry.release(key, entry);
  }
  await stopIfCancelled(asker, result, manner.signal);
  return result;
}

/**
 * Wait for an approval that was asked before, perhaps by a process that is gone.
 *
 * @param asker who waits.
 * @param standing how it stood when it was looked up.
 * @param manner how it is waited for.
 * @throws {WaitTimeout} it is still pending; nothing was changed.
 */
export async function resume(asker: Asker, standing: ApprovalStatus, manner: Manner): Promise<ApprovalResult> {
  if (standing.final) return resultOf(standing, standing.executionId);
  const { registry } = asker.session;
  const entry = registry.register(standing);
  entry.approvalId = standing.approvalId;
  let result: ApprovalResult | undefined;
  try {
    await move(asker, entry, manner);
    result = await answer(asker, entry, manner);
  } finally {
    registry.release(standing, entry);
  }
  if (result === undefined) throw new WaitTimeout(null, { details: { approval_id: standing.approvalId } });
  return result;
}

/** A question is withdrawn with its run's cancellation; only an operator's ends the code too. */
export async function stopIfCancelled(asker: Asker, result: ApprovalResult, signal?: AbortSignal): Promise<void> {
  if (!result.withdrawn) return;
  const execution = await asker.session.sender.send(getExecution(result.executionId), { patienceMs: null, signal });
  if (execution.status !== "cancelled" || execution.endedByApproval) return;
  throw new ExecutionCancelled(`execution ${execution.executionId} was cancelled: ${execution.statusReason}`, {
    details: { status_reason: execution.statusReason },
  });
}

/** Milliseconds that a call may take which is made while an answer is waited for. */
export function patienceUntil(until: Deadline): number | null {
  const left = until.left();
  return left === Infinity ? null : left;
}

/** Ask; where this agent may not be called back, ask without an address and wait by the held call alone. */
async function ask(
  asker: Asker,
  key: Key,
  question: RequestApprovalPayload,
  entry: Pause,
  manner: Manner,
): Promise<Asked> {
  const { callbackURL, until, signal } = manner;
  const options = { patienceMs: patienceUntil(until), signal };
  const plain = { ...question, round: key.round };
  if (callbackURL !== undefined) {
    const called = { ...plain, callbackUrl: callbackURL, callbackSecret: entry.secret };
    const asked = await unlessNotCalled(asker, () => asker.send(requestApproval(key.executionId, called), options));
    if (asked !== undefined) return asked;
  }
  return await asker.send(requestApproval(key.executionId, plain), options);
}

/** Let the answer come here, where there is an address for it. */
async function move(asker: Asker, entry: Pause, { callbackURL, until, signal }: Manner): Promise<void> {
  if (callbackURL === undefined) return;
  const moved = setCallback(entry.approvalId, callbackURL, entry.secret);
  try {
    await unlessNotCalled(asker, () => asker.send(moved, { patienceMs: patienceUntil(until), signal }));
  } catch (error) {
    // Whoever holds the run is told there; a bystander is not, and hears of it by asking.
    if (asker.own || !(error instanceof Conflict)) throw error;
  }
}

/** Undefined where the control plane may not call this agent, and the answer is waited for without that. */
async function unlessNotCalled<T>(asker: Asker, send: () => Promise<T>): Promise<T | undefined> {
  try {
    return await send();
  } catch (error) {
    const refused = error instanceof InvalidField && error.code === NOT_CALLED && asker.session.pulls;
    if (!refused) throw error;
    asker.session.log.warn(`the answer is waited for without callbacks: ${error.message}`);
    return undefined;
  }
}

/** The answer, or undefined when the time is up first. */
async function answer(asker: Asker, entry: Pause, { until, signal }: Manner): Promise<ApprovalResult | undefined> {
  const { session } = asker;
  if (session.registry.draining) throw new HandedBack();
  session.waits.add(entry.approvalId);
  let outcome: Awaited<typeof entry.settled> | undefined;
  try {
    outcome = await within(entry.settled, until.left(), signal);
  } finally {
    session.waits.remove(entry.approvalId);
  }
  if (outcome === undefined) return undefined;
  if (outcome instanceof HandedBack) throw outcome.again();
  await asker.sure();
  return outcome;
}

/** End the question's time on the server; what it says stands is the result, an answer at the last moment too. */
async function expired(asker: Asker, approvalId: string, signal: AbortSignal | undefined): Promise<ApprovalResult> {
  const stands = await asker.send(expire(approvalId), { patienceMs: LAST_WORD_MS, signal });
  return resultOf(stands, stands.executionId);
}
