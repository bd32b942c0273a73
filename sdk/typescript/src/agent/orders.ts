// What the headers of a dispatch say, and of the call that ends one.

import type { Answered } from "./answers.js";
import { invalid } from "./answers.js";

/** Names the dispatch of a run; an earlier one may write nothing. */
export const FENCE_HEADER = "x-holdshort-fence";
const INTEGER = /^[+-]?\d{1,15}$/;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** What a dispatch says of its run besides the input. */
export interface Order {
  readonly executionId: string;
  readonly fence: number;
  readonly instanceId: string | undefined;
  readonly runId: string | undefined;
  readonly parentExecutionId: string | undefined;
  readonly storedSteps: number | undefined;
  readonly timeLeft: number | undefined;
}

/** What ends a run that is over for the control plane. */
export interface Cancellation {
  readonly fence: number;
  readonly reason: string;
}

/** What was read, or the answer to what makes no sense. */
export type Read<T> = { readonly read: T } | { readonly refused: Answered };

/**
 * The order in the headers of a call.
 *
 * @param headers of the call.
 * @param executionId from X-Execution-ID.
 * @returns undefined for a call that is no dispatch.
 */
export function orderOf(headers: Headers, executionId: string | undefined): Read<Order> | undefined {
  const raw = headers.get(FENCE_HEADER);
  if (raw === null) return undefined;
  if (executionId === undefined) return { refused: invalid("X-Execution-ID", "required with X-Holdshort-Fence") };
  const fence = integer(raw);
  const storedSteps = numbered(headers.get("x-holdshort-steps"), integer);
  const timeLeft = numbered(headers.get("x-holdshort-time-left"), real);
  if (fence === undefined || storedSteps === "none" || timeLeft === "none") {
    const rule = "fence and steps are integers, the time left is a number of seconds";
    return { refused: invalid("X-Holdshort-*", rule) };
  }
  return {
    read: {
      executionId,
      fence,
      storedSteps,
      timeLeft,
      instanceId: headers.get("x-holdshort-instance") ?? undefined,
      runId: headers.get("x-run-id") ?? undefined,
      parentExecutionId: headers.get("x-parent-execution-id") ?? undefined,
    },
  };
}

/**
 * Fence and reason of a call that ends a run.
 *
 * @param headers of the call.
 * @param body decoded JSON, undefined where it is none.
 */
export function cancellationOf(headers: Headers, body: unknown): Read<Cancellation> {
  const raw = headers.get(FENCE_HEADER);
  if (raw === null) return { refused: invalid("X-Holdshort-Fence", "required") };
  const fence = integer(raw);
  if (fence === undefined || typeof body !== "object" || body === null || Array.isArray(body)) {
    return { refused: invalid("X-Holdshort-Fence", 'an integer, with {"reason": ...} as the body') };
  }
  const { reason } = body as { reason?: unknown };
  return { read: { fence, reason: typeof reason === "string" && reason !== "" ? reason : "cancelled" } };
}

function integer(text: string): number | undefined {
  return INTEGER.test(text.trim()) ? Number(text) : undefined;
}

function real(text: string): number | undefined {
  const number = NUMBER.test(text.trim()) ? Number(text) : Number.NaN;
  return Number.isFinite(number) ? number : undefined;
}

function numbered(text: string | null, read: (text: string) => number | undefined): number | undefined | "none" {
  return text === null || text === "" ? undefined : (read(text) ?? "none");
}
