// What people fill in: said before a question is asked, and what comes back is held against it before code sees it.

import { checkedChoices } from "../choices.js";
import { invalid } from "../core.js";
import { ValuesInvalid } from "../errors.js";
import type { ApprovalResult } from "../result.js";
import type { Form } from "../wire.js";

const LONGEST_TEXT = 16 * 1024;
const LONGEST_TITLE = 200;
const YES_NO = ["yes", "no"];
const KINDS: readonly string[] = ["text", "yes_no", "multiple_choice", "form"] satisfies AskKind[];

/** The kinds of questions that `ask` asks. */
export type AskKind = "text" | "yes_no" | "multiple_choice" | "form";

/** What may be answered. */
export interface Choosing {
  readonly kind?: AskKind | undefined;
  readonly options?: readonly string[] | undefined;
  readonly schema?: Readonly<Record<string, unknown>> | undefined;
  readonly yesLabel?: string | undefined;
  readonly noLabel?: string | undefined;
}

/**
 * The form of a question: form where a schema is given, multiple_choice where options are, else text.
 *
 * @throws {InvalidField} nobody could answer that.
 */
export function formOf({ kind, options, schema, yesLabel, noLabel }: Choosing): Form {
  if ((kind === "form") !== (schema !== undefined) && (kind !== undefined || options !== undefined)) {
    throw invalid("schema", "goes with the kind form, and with no other");
  }
  if (schema !== undefined) {
    if (options !== undefined) throw invalid("options", "go with the kind multiple_choice, and with no other");
    if (yesLabel !== undefined || noLabel !== undefined) {
      throw invalid("yesLabel", "goes with the kind yes_no, and with no other");
    }
    return { kind: "form", schema };
  }
  if (kind === "form") throw invalid("schema", "is needed by the kind form");
  if ((kind as string) === "secret") {
    throw invalid("kind", "must not be secret, as the answer is kept; humanFeedback asks for what leaves no trace");
  }
  const choices = checkedChoices(
    kind === undefined ? { options, yesLabel, noLabel } : { kind, options, yesLabel, noLabel },
  );
  return { kind: choices.kind, options: choices.options, yesLabel, noLabel };
}

/**
 * Refuse a form that nobody could fill in, before it is asked.
 *
 * @throws {InvalidField} a member breaks its rule. Whether `schema` is a JSON Schema the control plane says.
 */
export function checkForm(form: unknown): asserts form is Form {
  if (typeof form !== "object" || form === null || Array.isArray(form)) throw invalid("form", "must be an object");
  const known: Partial<Form> = form;
  const { kind, options, schema, editable = false, yesLabel, noLabel, ...others } = known;
  if (Object.keys(others).length > 0) throw invalid("form", `has no member ${Object.keys(others).join(", ")}`);
  if (!KINDS.includes(kind ?? "")) throw invalid("kind", `must be one of ${KINDS.join(", ")}`);
  if (typeof editable !== "boolean") throw invalid("editable", "must be true or false");
  if (editable && schema === undefined) throw invalid("editable", "goes with the kind form, and with no other");
  formOf({ kind: kind as AskKind, options, schema, yesLabel, noLabel });
}

/**
 * The result, if its values fit what was asked. Those of a schema were held against it by the control plane.
 *
 * @param form that was asked with; undefined for a question without one.
 * @param result what came of it.
 * @throws {ValuesInvalid} it is approved, and its values do not fit.
 */
export function fitting(form: Form | undefined, result: ApprovalResult): ApprovalResult {
  if (form === undefined || !result.approved) return result;
  const { data } = result;
  const filled = typeof data === "object" && data !== null && Object.hasOwn(data, "values");
  if (!filled) throw misfit(result, "it was approved without values");
  if (form.schema === undefined && !chosen(form, result.values)) {
    throw misfit(result, "this is no answer to what was asked");
  }
  return result;
}

function chosen(form: Form, values: unknown): boolean {
  if (typeof values !== "string" || values.trim() === "") return false;
  if (new TextEncoder().encode(values).length > LONGEST_TEXT) return false;
  if (form.kind === "yes_no") return YES_NO.includes(values);
  if (form.kind === "multiple_choice") return (form.options ?? []).includes(values);
  return form.kind === "text";
}

function misfit(result: ApprovalResult, why: string): ValuesInvalid {
  const { approvalId, decision, data } = result;
  const told = `approval ${approvalId} has values that do not fit what was asked: ${why}`;
  return new ValuesInvalid(told, { details: { approval_id: approvalId, decision, data } });
}

/** A question as a title, and what does not fit into one below it. */
export function worded(question: string, description: string | undefined): { title: string; description?: string } {
  const [first = "", ...rest] = question.trim().split("\n");
  const characters = [...first];
  const fits = characters.length <= LONGEST_TITLE;
  if (rest.length === 0 && fits) return description === undefined ? { title: first } : { title: first, description };
  const title = fits ? first : `${characters.slice(0, LONGEST_TITLE - 1).join("")}\u2026`;
  return { title, description: [question, description].filter(Boolean).join("\n\n") };
}
