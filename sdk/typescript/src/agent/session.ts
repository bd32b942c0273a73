// What all runs of an agent share: the connection, who waits for which answer, and the one held call for them all.

import type { PatientSender } from "../calling.js";
import { AccessLost, type NotAuthorised } from "../errors.js";
import { resultOf } from "../result.js";
import type { ApprovalStatus } from "../wire.js";
import type { Log } from "./log.js";
import type { Registry } from "./pauses.js";
import { SharedWait } from "./sharedWait.js";

/** The connection of an agent and its shared wait. */
export class Session {
  readonly sender: PatientSender;
  readonly registry: Registry;
  /** True where answers are also pulled, so that a question needs no callback. */
  readonly pulls: boolean;
  readonly waits: SharedWait;
  readonly log: Log;

  /**
   * @param sender reaches the control plane.
   * @param registry where answers are handed over.
   * @param pulls true to wait with a held call, false to look once a minute for what a push missed.
   * @param log where it is said that the waiting is refused.
   */
  constructor(sender: PatientSender, registry: Registry, pulls: boolean, log: Log) {
    this.sender = sender;
    this.registry = registry;
    this.pulls = pulls;
    this.log = log;
    this.waits = new SharedWait(sender, pulls, log, {
      settled: (approval) => this.#settled(approval),
      refused: (approvalIds, error) => this.#refused(approvalIds, error),
    });
  }

  #settled(approval: ApprovalStatus): void {
    this.registry.resolve(resultOf(approval, approval.executionId));
  }

  #refused(approvalIds: ReadonlySet<string>, error: NotAuthorised): void {
    const { status, requestId, details } = error;
    const end = new AccessLost(`nothing was decided here: ${error.message}`, { status, requestId, details });
    this.registry.lose(approvalIds, end);
  }
}
