/** A short-lived question from its asking to its one answer. */

import type { PatientSender } from "./calling.js";
import { checkedChoices, checkQuestion, type Choices, type FeedbackKind } from "./choices.js";
import type { Call } from "./core.js";
import { FeedbackEnded, FeedbackExpired, HoldshortError, NotFound, RequestIdUsed } from "./errors.js";
import { askFeedback, endFeedback, feedbackAnswer, type FeedbackAnswer, type FeedbackAsked } from "./routes.js";
import { newLock, type Lock } from "./seals.js";
import { deadline, sleep, withTimeout, type Deadline } from "./timers.js";

// For the last word, which withdraws the question or acknowledges its answer: whoever waits for it wants to go on.
const END_MS = 2_000;
const HOLD_S = 55;
const PACE_MS = 1_000;
// What the server may need to say that the time is up.
const GRACE_MS = 15_000;
const TIMEOUT_S = 300;

/** What a short-lived question is asked with. */
export interface HumanFeedbackOptions {
  /** 1-128 of `A-Z a-z 0-9 . _ ~ : -`, new for each question; made by `uniqueId()` when absent. */
  uniqueId?: string | undefined;
  /** 5-1800, 300 when absent; nobody's answer is waited for longer. */
  timeoutSeconds?: number | undefined;
  /** Of multiple_choice, 1-20 distinct texts of 1-200 characters. */
  options?: readonly string[] | undefined;
  /** multiple_choice where options are given, else text, when absent. */
  kind?: FeedbackKind | undefined;
  /** What the yes of yes_no is called. */
  yesLabel?: string | undefined;
  /** What its no is called. */
  noLabel?: string | undefined;
  /** The run that asks, shown with the question. */
  executionId?: string | undefined;
  /** Withdraws the question and ends the wait; the promise rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

interface Question {
  uniqueId: string;
  messageForUser: string;
  timeoutSeconds: number;
  choices: Choices;
  executionId: string | undefined;
}

/** An id that no other question has: the word (1-100 of `A-Z a-z 0-9 . _ ~ : -`), a dash and 16 random characters. */
export function uniqueId(word = "question"): string {
  return `${word}-${crypto.randomUUID().replaceAll("-", "").slice(-16)}`;
}

/** Ask a person and wait for the answer; `ApprovalClient.humanFeedback` says the rest. */
export async function humanFeedback(
  sender: PatientSender,
  message: string,
  options: HumanFeedbackOptions,
): Promise<string> {
  const question = questionOf(message, options);
  const { signal } = options;
  signal?.throwIfAborted();
  const waiting = new Waiting(question, await newLock());
  try {
    for (;;) {
      const answer = await waiting.round(sender, signal);
      if (answer !== undefined) return answer;
    }
  } finally {
    await toldLast(sender, waiting.end());
  }
}

function questionOf(message: string, options: HumanFeedbackOptions): Question {
  const { timeoutSeconds = TIMEOUT_S, executionId } = options;
  const id = options.uniqueId ?? uniqueId();
  const choices = checkedChoices(options);
  checkQuestion(id, message, timeoutSeconds);
  return { uniqueId: id, messageForUser: message, timeoutSeconds, choices, executionId };
}

async function toldLast(sender: PatientSender, last: Call<unknown> | undefined): Promise<void> {
  if (last === undefined) return;
  try {
    await withTimeout(END_MS, undefined, (signal) => sender.send(last, { patienceMs: END_MS, signal }));
  } catch {
    // Nobody waits for it then: the question is withdrawn after 15 s, and a read answer is gone after 30 s.
  }
}

/** One question: asked, waited for and opened. Its key is nowhere else. */
class Waiting {
  readonly #question: Question;
  readonly #lock: Lock;
  #registered = false;
  #stands = false;
  #joinedAnew = false;
  #used: RequestIdUsed | undefined;
  #until: Deadline | undefined;

  constructor(question: Question, lock: Lock) {
    this.#question = question;
    this.#lock = lock;
  }

  /** One call and what follows from it; the answer, once there is one. */
  async round(sender: PatientSender, signal: AbortSignal | undefined): Promise<string | undefined> {
    const pace = deadline(PACE_MS);
    const options = { patienceMs: this.#patience(sender.patienceMs), signal };
    try {
      if (!this.#registered && !this.#used) {
        await sender.send(this.#asking(), options);
        this.#nowOpen();
        return undefined;
      }
      const said = await sender.send(feedbackAnswer(this.#question.uniqueId, this.#used ? 0 : HOLD_S), options);
      if (said.outcome !== "pending") return await this.#opened(said);
      this.#stillOpen();
    } catch (error) {
      if (signal?.aborted || !(error instanceof HoldshortError)) throw error;
      this.#refused(error);
      return undefined;
    }
    // A control plane that stops answers at once; that must not become a busy loop.
    await sleep(pace.left(), signal);
    return undefined;
  }

  /**
   * Forget the key, and the last call to send: it acknowledges the answer, or withdraws the question.
   *
   * Undefined when nothing of this question is there: under its id may stand another call's.
   */
  end(): Call<unknown> | undefined {
    this.#lock.forget();
    return this.#stands ? endFeedback(this.#question.uniqueId) : undefined;
  }

  /** The sender's own while the question is asked, then as long as it may be open. */
  #patience(own: number | null): number {
    if (this.#until === undefined) return own ?? 1000 * this.#question.timeoutSeconds;
    return Math.max(own ?? 0, this.#until.left());
  }

  #asking(): Call<FeedbackAsked> {
    const { choices, ...question } = this.#question;
    return askFeedback({ ...question, ...choices, publicKey: this.#lock.publicKey });
  }

  #nowOpen(): void {
    this.#registered = true;
    this.#stands = true;
    this.#until = deadline(1000 * this.#question.timeoutSeconds + GRACE_MS);
  }

  /** Throws when a question cannot be open any more, whatever the answer says. */
  #stillOpen(): void {
    if (this.#used) throw this.#used;
    if (this.#until?.passed) throw new FeedbackExpired();
  }

  async #opened(said: FeedbackAnswer): Promise<string> {
    const answer = await this.#lock.open(this.#question.uniqueId, said.sealed?.enc ?? "", said.sealed?.ct ?? "");
    this.#stands = true;
    return answer;
  }

  /**
   * Go on after a refusal that another call mends; each is tried once.
   *
   * A control plane that knows nothing of the question is asked again. An id that is used up may be this very
   * question's, answered while the reply to its asking was lost: then the answer opens with this key alone.
   *
   * Throws the error when it is any other one. An answer under a used-up id that does not open is another question's:
   * then it is the id's refusal that is thrown.
   */
  #refused(error: HoldshortError): void {
    if (this.#used) throw this.#used;
    if (error instanceof FeedbackEnded) this.#stands = false;
    if (error instanceof RequestIdUsed && !this.#registered) {
      this.#used = error;
    } else if (error instanceof NotFound && this.#registered && !this.#joinedAnew) {
      this.#registered = false;
      this.#joinedAnew = true;
    } else {
      throw error;
    }
  }
}
