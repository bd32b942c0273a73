// Single keys, for the card with the visible ring and nothing else; they can be switched off.
import { all, isSteady, one } from "./dom.js";
import * as decide from "./decide.js";

const KEPT = "holdshort.keys";
const VERDICTS = { a: "approved", c: "request_changes", r: "rejected" };
const FIELDS = "input, textarea, select, [contenteditable]";

export function start() {
  document.addEventListener("keydown", pressed);
  document.addEventListener("focusin", followed);
  for (const button of all("[data-help-open]")) {
    button.hidden = false;
    button.addEventListener("click", help);
  }
  const choice = one("[data-keys]");
  if (choice) {
    choice.checked = areOn();
    choice.addEventListener("change", () => keep(choice.checked));
  }
}

function areOn() {
  try {
    return localStorage.getItem(KEPT) !== "off";
  } catch {
    return true;
  }
}

function keep(on) {
  try {
    localStorage.setItem(KEPT, on ? "on" : "off");
  } catch {
    // Without storage the choice holds for this page.
  }
}

function pressed(event) {
  if (event.isComposing || event.keyCode === 229 || event.defaultPrevented) return;
  if (one("dialog[open]")) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) confirmed(event);
  else if (event.key === "Escape") back(event);
  else if (isSingle(event) && act(event.key)) event.preventDefault();
}

function isSingle(event) {
  const withModifier = event.ctrlKey || event.metaKey || event.altKey;
  return areOn() && !withModifier && !event.repeat && !event.target.closest?.(FIELDS);
}

function confirmed(event) {
  if (!decide.armed() || !isSteady(decide.article())) return;
  event.preventDefault();
  decide.confirm();
}

function back(event) {
  if (decide.armed()) decide.arm("");
  else if (event.target.matches?.(FIELDS)) event.target.blur();
  else if (document.body.dataset.page !== "list") location.assign(list());
}

// The list as it was left, with its tab and its search.
function list() {
  const { home } = document.body.dataset;
  const from = URL.canParse(document.referrer) ? new URL(document.referrer) : null;
  return from?.origin === location.origin && from.pathname === home ? from.href : home;
}

function act(key) {
  if (key === "j" || key === "k") return move(key === "j" ? 1 : -1);
  if (key === "?") return help();
  if (key === "/") return search();
  const card = ringed();
  if (!card || !isSteady(card)) return false;
  if (key === "o") return open(card);
  return key in VERDICTS && card === decide.article() && decide.arm(VERDICTS[key]);
}

const cards = () => all("[data-feedbacks] > article, [data-rows] > article");
const ringed = () => one(".ring");

function ring(card) {
  for (const each of all(".ring")) each.classList.toggle("ring", each === card);
  card?.classList.add("ring");
}

// The ring goes where the focus goes, so that both are always on the same card.
function followed(event) {
  const card = event.target.closest?.("[data-feedbacks] > article, [data-rows] > article");
  if (card) ring(card);
  else if (!decide.article()) ring(null);
}

function move(by) {
  const found = cards();
  if (!found.length) return false;
  const at = found.indexOf(ringed());
  const next = found[Math.min(found.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
  next.tabIndex = -1;
  next.focus();
  ring(next);
  return true;
}

function open(card) {
  const link = one("h2 a", card);
  link?.click();
  return Boolean(link);
}

function search() {
  const field = one("[data-search]");
  field?.focus();
  field?.select();
  return Boolean(field);
}

function help() {
  const dialog = one("dialog[data-help]");
  dialog?.showModal();
  return Boolean(dialog);
}
