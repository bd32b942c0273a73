/** What the control plane says of approvals; members that are added later are ignored. Times are RFC 3339 texts. */

import { Members, textIn } from "./members.js";

export * from "./runWire.js";

/** How an approval can end; `pending` is none of them. */
export type Decision = "approved" | "rejected" | "request_changes" | "expired" | "withdrawn";

/** How an approval stands; a later control plane may know more words, and none of those is a decision. */
export type ApprovalState = Decision | "pending" | (string & {});

/** What the deadline does: "cancel" ends the run, "resume" lets it go on with the result expired. */
export type OnExpiry = "cancel" | "resume";

/** The decisions, all of them final. */
export const DECISIONS: ReadonlySet<string> = new Set<Decision>([
  "approved",
  "rejected",
  "request_changes",
  "expired",
  "withdrawn",
]);

/** What a person fills in while deciding. */
export interface Form {
  /** text, yes_no, multiple_choice or form. */
  kind: string;
  /** Of multiple_choice, 1-20 distinct texts of 1-200 characters. */
  options?: readonly string[] | undefined;
  /** Of yes_no. */
  yesLabel?: string | undefined;
  /** Of yes_no. */
  noLabel?: string | undefined;
  /** Of form, the JSON Schema of an object; the control plane checks the values against it. */
  schema?: Readonly<Record<string, unknown>> | undefined;
  /** True where the payload is what is filled in already, and may be changed. */
  editable?: boolean | undefined;
}

/** The answer inside an approval's status: decision, comment and the sender's own data. */
export interface Answer {
  decision: string;
  feedback: string;
  /** null when there was none. */
  data: unknown;
}

/** An approval as it stands. */
export interface ApprovalStatus {
  approvalId: string;
  approvalRequestId: string;
  executionId: string;
  round: number;
  status: ApprovalState;
  /** True when it will not change any more. */
  final: boolean;
  /** null while it is pending. */
  response: Answer | null;
  requestUrl: string | null;
  requestedAt: string | null;
  respondedAt: string | null;
  expiresAt: string | null;
  executionStatus: string | null;
}

/** One row of an approval's history; `data` depends on the type. */
export interface HistoryEntry {
  type: string;
  at: string;
  actorKind: string;
  actorName: string;
  actorVia: string;
  executionId: string | null;
  approvalId: string | null;
  approvalRequestId: string | null;
  nodeId: string | null;
  data: unknown;
}

/** An approval with what its reviewer sees; `history` is empty where more than one was asked for. */
export interface Approval extends ApprovalStatus {
  nodeId: string | null;
  title: string | null;
  description: string | null;
  payload: unknown;
  payloadDigest: string | null;
  onExpiry: string | null;
  decidedBy: string | null;
  form: Form | null;
  history: HistoryEntry[];
}

/** The answer to an ask: the approval that stands, with `response` when it is final already. */
export interface Asked {
  approvalId: string;
  approvalRequestId: string;
  round: number;
  status: ApprovalState;
  /** True when it is decided, expired or withdrawn already. */
  final: boolean;
  approvalRequestUrl: string | null;
  requestedAt: string | null;
  expiresAt: string | null;
  payloadDigest: string | null;
  response: Answer | null;
}

/** The answer to a decision. */
export interface Decided {
  /** processed; or already_processed, with what stands in `approvalStatus`, `decision` and `currentStatus`. */
  status: string;
  executionId: string | null;
  approvalRequestId: string | null;
  approvalId: string | null;
  round: number | null;
  decision: string | null;
  /** Of the execution, after this decision. */
  newStatus: string | null;
  /** Of the execution, when the decision was made before. */
  currentStatus: string | null;
  approvalStatus: string | null;
  /** True when exactly this decision was there before. */
  replayed: boolean;
}

/** One page of approvals; `nextCursor` is null on the last one. */
export interface ApprovalPage {
  approvals: Approval[];
  nextCursor: string | null;
}

/** Those of the approvals waited for that are final; empty when the wait passed. */
export interface Settled {
  approvals: ApprovalStatus[];
}

/** Reads an {@link Answer}. */
export function readAnswer(value: unknown): Answer {
  const from = new Members(value);
  return { decision: from.text("decision"), feedback: from.maybeText("feedback") ?? "", data: from.any("data") };
}

/** Reads an {@link ApprovalStatus}. */
export function readStatus(value: unknown): ApprovalStatus {
  return statusIn(new Members(value));
}

/** Reads an {@link Approval}. */
export function readApproval(value: unknown): Approval {
  const from = new Members(value);
  return {
    ...statusIn(from),
    nodeId: from.maybeText("node_id"),
    title: from.maybeText("title"),
    description: from.maybeText("description"),
    payload: from.any("payload"),
    payloadDigest: from.maybeText("payload_digest"),
    onExpiry: from.maybeText("on_expiry"),
    decidedBy: from.maybeText("decided_by"),
    form: from.maybe("form", readForm),
    history: from.maybeList("history", readEntry),
  };
}

/** Reads an {@link Asked}. */
export function readAsked(value: unknown): Asked {
  const from = new Members(value);
  const status = from.text("status");
  return {
    approvalId: from.text("approval_id"),
    approvalRequestId: from.text("approval_request_id"),
    round: from.number("round"),
    status,
    final: DECISIONS.has(status),
    approvalRequestUrl: from.maybeText("approval_request_url"),
    requestedAt: from.maybeText("requested_at"),
    expiresAt: from.maybeText("expires_at"),
    payloadDigest: from.maybeText("payload_digest"),
    response: from.maybe("response", readAnswer),
  };
}

/** Reads a {@link Decided}. */
export function readDecided(value: unknown): Decided {
  const from = new Members(value);
  return {
    status: from.text("status"),
    executionId: from.maybeText("execution_id"),
    approvalRequestId: from.maybeText("approval_request_id"),
    approvalId: from.maybeText("approval_id"),
    round: from.maybeNumber("round"),
    decision: from.maybeText("decision"),
    newStatus: from.maybeText("new_status"),
    currentStatus: from.maybeText("current_status"),
    approvalStatus: from.maybeText("approval_status"),
    replayed: from.flag("replayed"),
  };
}

/** Reads an {@link ApprovalPage}. */
export function readApprovalPage(value: unknown): ApprovalPage {
  const from = new Members(value);
  return { approvals: from.list("approvals", readApproval), nextCursor: from.maybeText("next_cursor") };
}

/** Reads a {@link Settled}. */
export function readSettled(value: unknown): Settled {
  return { approvals: new Members(value).list("approvals", readStatus) };
}

function statusIn(from: Members): ApprovalStatus {
  const status = from.text("status");
  return {
    approvalId: from.text("approval_id"),
    approvalRequestId: from.text("approval_request_id"),
    executionId: from.text("execution_id"),
    round: from.number("round"),
    status,
    final: DECISIONS.has(status),
    response: from.maybe("response", readAnswer),
    requestUrl: from.maybeText("request_url"),
    requestedAt: from.maybeText("requested_at"),
    respondedAt: from.maybeText("responded_at"),
    expiresAt: from.maybeText("expires_at"),
    executionStatus: from.maybeText("execution_status"),
  };
}

function readForm(value: unknown): Form {
  const from = new Members(value);
  return {
    kind: from.text("kind"),
    options: from.maybe("options", () => from.list("options", textIn)) ?? undefined,
    yesLabel: from.maybeText("yes_label") ?? undefined,
    noLabel: from.maybeText("no_label") ?? undefined,
    schema: from.maybe("schema", (schema) => schema as Record<string, unknown>) ?? undefined,
    editable: from.flag("editable"),
  };
}

function readEntry(value: unknown): HistoryEntry {
  const from = new Members(value);
  return {
    type: from.text("type"),
    at: from.text("at"),
    actorKind: from.text("actor_kind"),
    actorName: from.text("actor_name"),
    actorVia: from.text("actor_via"),
    executionId: from.maybeText("execution_id"),
    approvalId: from.maybeText("approval_id"),
    approvalRequestId: from.maybeText("approval_request_id"),
    nodeId: from.maybeText("node_id"),
    data: from.any("data"),
  };
}
