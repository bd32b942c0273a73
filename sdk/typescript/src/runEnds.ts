/** The ends of a run, which its code must let pass. */

import { named, ToldError, type ErrorFacts } from "./errorBase.js";

/**
 * This run must stop. It is no HoldshortError, so that code which goes on after those does not go on after this one;
 * whatever a run's code does with it, the run ends as this end.
 */
export class RunEnded extends ToldError {
  declare protected readonly isRunEnded: true;
  static override readonly code: string = "run_ended";
  static override readonly says: string = "This run must stop; let this error pass.";
  static {
    named(this, "RunEnded");
  }

  /** The same reason, to be thrown at another place, with a stack of its own. */
  again(): this {
    const kind = this.constructor as new (message: string, facts: ErrorFacts) => this;
    return new kind(this.message, this);
  }
}

/** An operator cancelled this run; clean up in `finally` and let it end. */
export class ExecutionCancelled extends RunEnded {
  declare protected readonly isExecutionCancelled: true;
  static override readonly code: string = "execution_cancelled";
  static override readonly says: string = "An operator cancelled this run; clean up in `finally` and let it end.";
  static {
    named(this, "ExecutionCancelled");
  }
}

/** Another instance took this run over; nothing this one does is written any more. Let it end. */
export class StaleInstance extends RunEnded {
  declare protected readonly isStaleInstance: true;
  static override readonly code: string = "stale_instance";
  static override readonly says: string =
    "Another instance took this run over; nothing this one does is written any more. Let it end.";
  static {
    named(this, "StaleInstance");
  }
}

/**
 * The code does other steps than this run did before; put it back, or start a new execution. The run is reported as
 * failed, with the reason step_mismatch.
 */
export class StepMismatch extends RunEnded {
  declare protected readonly isStepMismatch: true;
  static override readonly code: string = "step_mismatch";
  static override readonly says: string =
    "The code does other steps than this run did before; put it back, or start a new execution.";
  static {
    named(this, "StepMismatch");
  }

  /**
   * The error of a call that names another step than the one stored.
   *
   * @param place where in the run, "" at its beginning
   * @param expected the name that is stored there
   * @param got the name that the code asks for
   */
  static between(place: string, expected: string, got: string): StepMismatch {
    const where = place ? `behind ${place}` : "at the beginning";
    const told = `${where} this run did the step "${expected}", and its code now asks for "${got}"`;
    const advice = "names and order must stay the same while runs are open: put it back, or start a new execution";
    return new StepMismatch(`${told}; ${advice}`, { details: { expected, got, place } });
  }
}

/** This process stops while the run waits; the run goes on when it is started again under its executionId. */
export class HandedBack extends RunEnded {
  declare protected readonly isHandedBack: true;
  static override readonly code: string = "handed_back";
  static override readonly says: string =
    "This process stops while the run waits; the run goes on when it is started again under its executionId.";
  static {
    named(this, "HandedBack");
  }
}

/**
 * The control plane refuses this program's key since the run began to wait. This is never a decision. The run waits
 * without this process: start the program again with a good key, and under its executionId the run finds its
 * question, and its answer.
 */
export class AccessLost extends HandedBack {
  declare protected readonly isAccessLost: true;
  static override readonly code: string = "access_lost";
  static override readonly says: string =
    "The control plane refuses this program's key since the run began to wait. This is never a decision.";
  static {
    named(this, "AccessLost");
  }
}
