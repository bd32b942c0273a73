// The decision on one approval: a first press arms a verdict, a second one sends it, and what was typed is kept.
import { all, made, one, parsed, post, problem, touch } from "./dom.js";
import * as clock from "./clock.js";
import { settledAmong } from "./rows.js";
import { keepPlace } from "./still.js";
import { announce, say } from "./words.js";

const AGAIN_MS = 2000;
let sending = false;

const form = () => one("form[data-decide]");
const buttons = () => all("button[name=verdict]", form() ?? document.createElement("form"));
export const article = () => form()?.closest("article");
export const armed = () => form()?.dataset.armed ?? "";

export function start() {
  document.addEventListener("click", pressed);
  document.addEventListener("submit", submitted);
  document.addEventListener("keydown", entered);
  document.addEventListener("toggle", fold, true);
  document.addEventListener("change", fold, true);
  prepare();
}

function prepare() {
  if (!form()) return;
  touch(article());
  article().classList.add("ring");
  const confirmed = one("input[name=confirmed]", form());
  form().dataset.armed = "";
  // One that the server drew switched off is off for good: what it would approve cannot be read.
  for (const button of approving()) if (button.disabled) button.dataset.off = "";
  // A box that came back ticked says that all of it was opened before.
  if (one("[data-read] input", form())?.checked) for (const each of all("details[data-fold]")) each.dataset.read = "";
  fold();
  if (confirmed?.value) arm(confirmed.value, true);
}

// Arm a verdict, or none; it is sent by a second press, or by Ctrl or Cmd with Enter.
export function arm(verdict, quietly = false) {
  const chosen = buttons().find((button) => button.value === verdict && !button.disabled);
  if (!form() || sending || (verdict && !chosen)) return false;
  if (chosen && !chosen.formNoValidate && !form().reportValidity()) return false;
  form().dataset.armed = verdict;
  hidden("confirmed").value = verdict;
  for (const button of buttons()) {
    button.toggleAttribute("data-armed", button === chosen);
    button.setAttribute("aria-pressed", String(button === chosen));
  }
  hint(chosen ? `${said(verdict)} ${say("armed", { verdict: chosen.textContent.trim() })}` : "");
  if (!chosen) fold();
  else if (!quietly) announce(hintText());
  if (verdict === "request_changes" && !comment().value) comment().focus();
  return true;
}

const comment = () => one("textarea[name=feedback]", form());

// What sending it would come to, as the page says it, and what is missing for it.
function said(verdict) {
  const missing = comment()?.value.trim() ? "" : say(`silent-${verdict}`);
  return `${missing} ${one(`[data-consequence="${verdict}"]`, article())?.textContent ?? ""}`.trim();
}

export function confirm() {
  const chosen = buttons().find((button) => button.value === armed() && armed() && !button.disabled);
  if (chosen) send(chosen);
}

function pressed(event) {
  const button = event.target.closest?.("form[data-decide] button[name=verdict]");
  if (!button || sending) return;
  event.preventDefault();
  // The second half of a double click is no second press.
  if (event.detail > 1) return;
  if (button.value === "back" || armed() === button.value) send(button);
  else arm(button.value);
}

// Only a press of a button comes here otherwise, so that nothing is sent by Enter in a field.
function submitted(event) {
  if (event.target.matches("form[data-decide]")) event.preventDefault();
}

function entered(event) {
  const inForm = event.target.closest?.("form[data-decide]");
  if (!inForm || event.key !== "Enter" || event.ctrlKey || event.metaKey || event.isComposing) return;
  const button = event.target.closest("button[name=verdict]");
  if (button && !event.repeat && armed() !== button.value) arm(button.value);
  if (!event.target.matches("textarea, summary, a, select, button:not([name=verdict])")) event.preventDefault();
}

// Approve stays off until everything that is folded was opened once; the box that says so without script is ours then.
function fold() {
  if (!form()) return;
  for (const each of all("details[data-fold][open]")) each.dataset.read = "";
  const unread = all("[data-fold]:not([data-read])", one("#payload") ?? document).length > 0 && "folds" in form().dataset;
  const box = one("[data-read] input", form());
  if (box) {
    box.required = false;
    box.checked = !unread;
    box.closest("[data-read]").hidden = true;
  }
  for (const button of approving()) button.disabled = sending || unread || "off" in button.dataset;
  if (unread && !armed()) hint(say("unread"));
  else if (hintText() === say("unread")) hint("");
}

const approving = () => buttons().filter((button) => button.value === "approved");

async function send(button) {
  const body = new URLSearchParams(new FormData(form()));
  body.set("verdict", button.value);
  busy(true);
  try {
    const reply = await post(form().action, body);
    if (reply.status >= 500) throw new Error("not known");
    const refused = await problem(reply);
    if (refused) refuse(refused.message);
    else show(parsed(await reply.text()));
  } catch {
    lookAgain();
  }
}

function refuse(words) {
  busy(false);
  hint(words);
  announce(words);
}

// Whether it was taken is not known, so nothing is claimed: look what stands until something is known.
async function lookAgain() {
  hint(say("not-known"));
  announce(hintText());
  try {
    const [end] = await settledAmong([article().dataset.approval]);
    busy(false);
    if (end) settled(end);
    else hint(say("still-waiting"));
  } catch {
    setTimeout(lookAgain, AGAIN_MS);
  }
}

// The page as the server answers, in place of this one; it keeps what was typed.
function show(page) {
  const now = one("main", page);
  if (!now) throw new Error("no page of ours");
  sending = false;
  one("main").replaceWith(document.adoptNode(now));
  clock.draw();
  prepare();
  const told = one("[data-banner], [role=alert]");
  announce(told?.textContent.replace(/\s+/g, " ").trim() ?? "");
  (one("[aria-invalid=true]") ?? one("main")).focus({ preventScroll: true });
  one("main").scrollIntoView({ block: "start" });
}

// It ended elsewhere, or here: the buttons go, what was typed stays to be copied.
export function settled({ approval_id: id, status, words, at }) {
  const place = article();
  if (!place || place.dataset.approval !== id || sending) return;
  place.dataset.status = status;
  place.classList.remove("ring");
  arm("", true);
  keepPlace(() => {
    const banner = one("[data-banner]", place);
    banner.className = `banner ${status} fresh`;
    banner.replaceChildren(made("p", ""));
    banner.firstChild.append(clock.ended(status, words, at));
    banner.hidden = false;
  });
  // Below too, where the buttons were and the eyes are.
  const end = made("p", "", { class: "ask" });
  end.append(clock.ended(status, words, at));
  one("[data-verdicts]", form())?.replaceWith(end);
  for (const part of all("[data-read], [data-end]", place)) part.remove();
  for (const field of form().elements) if (field.type !== "hidden" && "readOnly" in field) field.readOnly = true;
  hint(one("textarea", form())?.value ? say("typed-kept") : "");
  form().removeAttribute("data-decide");
  announce(words);
}

function busy(now) {
  sending = now;
  form().setAttribute("aria-busy", String(now));
  for (const button of buttons()) button.disabled = now;
  if (now) hint(say("sending"));
  else fold();
}

function hint(text) {
  let place = one("[data-hint]", form());
  if (!place && text) {
    place = made("p", "", { class: "ask", "data-hint": "" });
    const verdicts = one("[data-verdicts]", form());
    if (verdicts) verdicts.before(place);
    else (one(".bar", form()) ?? form()).append(place);
  }
  if (place) place.textContent = text;
}

function hidden(name) {
  const found = one(`input[name="${name}"]`, form());
  if (found) return found;
  form().append(made("input", "", { type: "hidden", name }));
  return hidden(name);
}

const hintText = () => (form() && one("[data-hint]", form())?.textContent) || "";
