// One run's end must not be the end of the process, and of all its other runs.

import { RunEnded } from "../errors.js";

/**
 * While this is in force, the end of a run that some forgotten promise rejects with is passed over. Whatever else is
 * rejected unhandled ends the process, as it does without this, unless the program handles it.
 *
 * @returns ends it.
 */
export function letEndsPass(): () => void {
  const passed = (reason: unknown): void => {
    if (reason instanceof RunEnded) return;
    if (process.listenerCount("unhandledRejection") === 1) throw reason;
  };
  process.on("unhandledRejection", passed);
  return () => process.removeListener("unhandledRejection", passed);
}
