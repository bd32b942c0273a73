// What the small control plane of the tests keeps, and what it answers.

/** JSON members. */
export type Body = Record<string, unknown>;

/** An answer. */
export interface Reply {
  readonly status: number;
  readonly body: unknown;
}

/** A question as it is kept. */
export interface Approval {
  readonly id: string;
  readonly executionId: string;
  readonly requestId: string;
  readonly round: number;
  readonly onExpiry: string;
  callbackUrl: string | undefined;
  callbackSecret: string | undefined;
  status: string;
  feedback: string;
  response: unknown;
}

/** A run as it is kept. */
export interface Execution {
  readonly id: string;
  readonly input: unknown;
  status: string;
  reason: string;
  fence: number;
  dispatched: boolean;
  readonly steps: Body[];
  readonly notes: Body[];
  /** What its code reported at its end. */
  reported: Body | undefined;
}

/** An error answer. */
export function refused(status: number, error: string, more: Body = {}): Reply {
  return { status, body: { error, message: error, ...more } };
}

/** 409. */
export function conflict(error: string, more: Body = {}): Reply {
  return refused(409, error, more);
}

type Answerer = (match: RegExpExecArray, body: Body) => Reply;

/** Runs and approvals in memory. */
export class Desk {
  readonly executions = new Map<string, Execution>();
  readonly approvals: Approval[] = [];
  readonly nodes = new Map<string, Body>();
  readonly handedBack: string[] = [];
  readonly #waiting: (() => void)[] = [];
  readonly #routes: readonly (readonly [string, RegExp, Answerer])[] = [
    ["POST", /^\/executions$/, (_, body) => this.#created(body)],
    ["GET", /^\/executions\/([^/]+)$/, ([, id = ""]) => this.#shown(id)],
    ["POST", /^\/executions\/([^/]+)\/status$/, ([, id = ""], body) => this.#reported(id, body)],
    ["POST", /^\/executions\/([^/]+)\/notes$/, ([, id = ""], body) => this.#noted(id, body)],
    ["POST", /^\/executions\/([^/]+)\/steps$/, ([, id = ""], body) => this.#kept(id, body)],
    ["GET", /^\/executions\/([^/]+)\/steps$/, ([, id = ""], body) => this.#steps(id, body)],
    ["POST", /^\/executions\/([^/]+)\/request-approval$/, ([, id = ""], body) => this.#asked(id, body)],
    ["GET", /^\/executions\/([^/]+)\/approval-status$/, ([, id = ""], body) => this.#status(id, body)],
    ["GET", /^\/approvals$/, (_, body) => this.#listed(body)],
    ["POST", /^\/approvals\/([^/]+)\/callback$/, ([, id = ""], body) => this.#moved(id, body)],
    ["POST", /^\/approvals\/([^/]+)\/expire$/, ([, id = ""]) => this.#expired(id)],
    ["POST", /^\/nodes\/register$/, (_, body) => this.#registered(body)],
    ["POST", /^\/nodes\/([^/]+)\/heartbeat$/, (_, body) => this.#beaten(body)],
    ["POST", /^\/nodes\/([^/]+)\/hand-back$/, (_, body) => this.#handBack(body)],
    ["POST", /^\/nodes\/([^/]+)\/shutdown$/, (_, body) => this.#gone(body)],
  ];

  /** Return when something changes. */
  changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  /** Something changed. */
  change(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** A run, made when there is none. */
  execution(id: string, input: unknown = {}): Execution {
    const before = this.executions.get(id);
    if (before !== undefined) return before;
    const known = { id, input, status: "running", reason: "", fence: 0, dispatched: false, reported: undefined };
    const made: Execution = { ...known, steps: [], notes: [] };
    this.executions.set(id, made);
    return made;
  }

  /** As if the process had died before it could report. */
  again(id: string): void {
    const execution = this.execution(id);
    execution.status = "running";
    execution.reported = undefined;
  }

  /** End an approval, and what follows for its run. */
  decide(approval: Approval, decision: string, more: { feedback?: string; response?: unknown } = {}): void {
    approval.status = decision;
    approval.feedback = more.feedback ?? "";
    approval.response = more.response ?? null;
    const execution = this.execution(approval.executionId);
    if (decision === "rejected") this.cancel(execution, "approval_rejected");
    if (decision === "expired" && approval.onExpiry === "cancel") this.cancel(execution, "approval_expired");
    this.change();
  }

  /** End a run, as an operator or an approval does. */
  cancel(execution: Execution, reason: string): void {
    execution.status = "cancelled";
    execution.reason = reason;
    for (const each of this.approvals) {
      if (each.executionId === execution.id && each.status === "pending") each.status = "withdrawn";
    }
    this.change();
  }

  /** What a callback says of an approval. */
  told(approval: Approval): Body {
    const { status: decision, feedback, response } = approval;
    return { ...this.#shownApproval(approval), decision, feedback, response, data: response };
  }

  /** Those of the approvals that are final. */
  final(ids: readonly string[]): Body[] {
    return this.approvals
      .filter((each) => each.status !== "pending" && ids.includes(each.id))
      .map((each) => this.#shownApproval(each));
  }

  /** Answer a request; the fence is the one that it names. */
  answer(method: string, path: string, body: Body, fence: number | undefined): Reply {
    for (const [known, pattern, answerer] of this.#routes) {
      const match = known === method ? pattern.exec(path) : null;
      if (match === null) continue;
      const execution = this.executions.get(match[1] ?? "");
      if (fence !== undefined && execution !== undefined && fence < execution.fence) return conflict("stale_instance");
      const reply = answerer(match, body);
      this.change();
      return reply;
    }
    return refused(404, "not_found");
  }

  #created(body: Body): Reply {
    const execution = this.execution(body["execution_id"] as string, body["input"] ?? null);
    return { status: 201, body: this.#shownExecution(execution) };
  }

  #shown(id: string): Reply {
    const execution = this.executions.get(id);
    return execution === undefined
      ? refused(404, "execution_not_found")
      : { status: 200, body: this.#shownExecution(execution) };
  }

  #reported(id: string, body: Body): Reply {
    const execution = this.execution(id);
    execution.reported = body;
    if (!isFinal(execution)) execution.status = body["status"] as string;
    return { status: 200, body: this.#shownExecution(execution) };
  }

  #noted(id: string, body: Body): Reply {
    this.execution(id).notes.push(body);
    return { status: 201, body: {} };
  }

  #kept(id: string, body: Body): Reply {
    const { steps, status, reason } = this.execution(id);
    const before = steps.find((step) => step["name"] === body["name"] && step["occurrence"] === body["occurrence"]);
    if (before !== undefined)
      return before["previous"] === body["previous"] ? { status: 200, body: before } : conflict("step_mismatch");
    if (isFinal({ status })) return conflict("invalid_state", { execution_status: status, status_reason: reason });
    const step = { ...body, position: steps.length + 1, at: "2026-01-01T00:00:00Z" };
    steps.push(step);
    return { status: 201, body: step };
  }

  #steps(id: string, { after = "0" }: Body): Reply {
    const { steps } = this.execution(id);
    const from = Number(after);
    const page = steps.slice(from, from + 2);
    const next = from + page.length;
    return { status: 200, body: { steps: page, next_after: next < steps.length ? next : null } };
  }

  #asked(id: string, body: Body): Reply {
    const execution = this.execution(id);
    const requestId = body["approval_request_id"] as string;
    const round = body["round"] as number;
    const before = this.approvals.find(
      (each) => each.executionId === id && each.requestId === requestId && each.round === round,
    );
    if (before === undefined && isFinal(execution))
      return conflict("invalid_state", { execution_status: execution.status });
    const approval = before ?? this.#opened(id, requestId, round, body);
    approval.callbackUrl = body["callback_url"] as string | undefined;
    approval.callbackSecret = body["callback_secret"] as string | undefined;
    return { status: 200, body: this.#shownApproval(approval) };
  }

  #opened(executionId: string, requestId: string, round: number, body: Body): Approval {
    const known = { executionId, requestId, round, onExpiry: (body["on_expiry"] as string | undefined) ?? "cancel" };
    const told = { callbackUrl: undefined, callbackSecret: undefined, status: "pending", feedback: "", response: null };
    const approval: Approval = { id: `apr_${this.approvals.length + 1}`, ...known, ...told };
    this.approvals.push(approval);
    return approval;
  }

  #status(id: string, body: Body): Reply {
    const wanted = body["approval_request_id"];
    const found = this.approvals
      .filter((each) => each.executionId === id && (wanted === undefined || each.requestId === wanted))
      .at(-1);
    return found === undefined
      ? refused(404, "no_approval_request")
      : { status: 200, body: this.#shownApproval(found) };
  }

  #listed(body: Body): Reply {
    const { approval_request_id: wanted, status } = body;
    const found = this.approvals.filter(
      (each) => each.requestId === wanted && (status === undefined || each.status === status),
    );
    return { status: 200, body: { approvals: found.map((each) => this.#shownApproval(each)), next_cursor: null } };
  }

  #moved(id: string, body: Body): Reply {
    const approval = this.#approval(id);
    approval.callbackUrl = body["callback_url"] as string;
    approval.callbackSecret = body["callback_secret"] as string;
    return { status: 200, body: this.#shownApproval(approval) };
  }

  #expired(id: string): Reply {
    const approval = this.#approval(id);
    if (approval.status === "pending") this.decide(approval, "expired");
    return { status: 200, body: this.#shownApproval(approval) };
  }

  #registered(body: Body): Reply {
    this.nodes.set(body["instance_id"] as string, { ...body, status: "ready" });
    return { status: 200, body: { lease_seconds: 15, heartbeat_seconds: 0.2 } };
  }

  #beaten(body: Body): Reply {
    const node = this.nodes.get(body["instance_id"] as string);
    if (node === undefined) return refused(404, "node_not_found");
    node["status"] = body["status"];
    return { status: 200, body: { lease_seconds: 15 } };
  }

  #handBack(body: Body): Reply {
    const runs = body["executions"] as { execution_id: string }[];
    this.handedBack.push(...runs.map((run) => run.execution_id));
    return { status: 200, body: { handed_back: runs.map((run) => run.execution_id) } };
  }

  #gone(body: Body): Reply {
    this.nodes.delete(body["instance_id"] as string);
    return { status: 200, body: {} };
  }

  #approval(id: string): Approval {
    const found = this.approvals.find((each) => each.id === id);
    if (found === undefined) throw new Error(`no approval ${id}`);
    return found;
  }

  #shownExecution({ id, status, reason, input }: Execution): Body {
    return { execution_id: id, node_id: "node-1", status, status_reason: reason || null, input };
  }

  #shownApproval(approval: Approval): Body {
    const { id, executionId, requestId, round, status, feedback, response } = approval;
    const known = { approval_id: id, execution_id: executionId, approval_request_id: requestId, round, status };
    const answer = status === "pending" ? null : { decision: status, feedback, data: response };
    return { ...known, response: answer, execution_status: this.execution(executionId).status };
  }
}

function isFinal({ status }: { readonly status: string }): boolean {
  return ["succeeded", "failed", "cancelled", "timeout"].includes(status);
}
