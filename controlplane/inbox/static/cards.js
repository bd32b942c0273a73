// Short-lived questions. An answer is in its one field and in what is sent, and in nothing that outlives either.
import { SETTLED_MS, all, fresh, isSteady, made, named, one, parsed, post, token, touch } from "./dom.js";
import * as clock from "./clock.js";
import * as notice from "./notice.js";
import * as rows from "./rows.js";
import { isFree, whenFree } from "./still.js";
import { announce, say } from "./words.js";

const AGAIN_MS = 2000;
const STAYS_MS = 6000;
const BELOW = "[data-rows], .filters, .tabline, .empty, .pages";
const GONE = new Set(["already_answered", "request_expired", "request_cancelled", "request_not_found"]);
const shut = new Set();

const section = () => one("[data-feedbacks]");
const cards = () => all("article[data-feedback]", section() ?? document.createElement("div"));

export function start() {
  for (const card of cards()) prepare(card);
  for (const card of cards()) notice.expect(card.dataset.feedback, card.dataset.expires);
  addEventListener("pagehide", forget);
}

// A question as the server drew it; it appears at once unless it would move what is in use below.
export function asked({ unique_id: id, html }) {
  if (section() === null || named("data-feedback", id) || shut.has(id) || !isList()) return;
  const card = one("article", parsed(html));
  rows.hold(id, !isFree(BELOW));
  if (!isFree(BELOW)) announce(say("question-waits"));
  whenFree(BELOW, () => put(document.adoptNode(card)));
}

export function resolved({ unique_id: id, words }) {
  shut.add(id);
  rows.hold(id, false);
  const card = named("data-feedback", id);
  if (card && !isOver(card)) close(card, words);
}

// Of the cards on the page those stay open that are among these.
export function only(ids) {
  const open = new Set(ids);
  for (const card of cards().filter((each) => !open.has(each.dataset.feedback))) {
    if (!isOver(card)) close(card, say("question-over"));
  }
  for (const id of rows.heldBack().filter((each) => !open.has(each))) resolved({ unique_id: id });
}

const isOver = (card) => "closed" in card.dataset || "sending" in card.dataset;
const isList = () => document.body.dataset.page === "list";

function put(card) {
  rows.hold(card.dataset.feedback, false);
  if (shut.has(card.dataset.feedback) || named("data-feedback", card.dataset.feedback)) return;
  const later = cards().find((each) => each.dataset.created > card.dataset.created);
  touch(card);
  card.classList.add("fresh");
  section().insertBefore(card, later ?? null);
  for (const each of below(card)) touch(each);
  prepare(card);
  clock.draw(card);
  announce(say("question-new"));
  hold(card);
}

// What stands below a card was moved by it; what stands above was not, and takes a press as before.
const below = (card) =>
  all("[data-feedbacks] > article, [data-rows] > article").filter(
    (each) => card.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING,
  );

// A button that has just come up under a finger is not what the finger meant.
function hold(card) {
  const found = all("button", card);
  for (const button of found) button.disabled = true;
  setTimeout(() => "sending" in card.dataset || found.forEach((button) => (button.disabled = false)), SETTLED_MS);
}

function prepare(card) {
  const form = one("form[data-answer]", card);
  form.elements.csrf.value = token();
  form.elements.submission_id.value = fresh();
  form.addEventListener("submit", (event) => submit(event, card));
  // Another answer is another submission: the server takes the same one twice for the same.
  form.addEventListener("input", () => (form.elements.submission_id.value = fresh()));
  const show = one("[data-show]", form);
  if (!show) return;
  show.hidden = false;
  show.addEventListener("click", () => {
    const hidden = one("[data-field]", form).classList.toggle("masked");
    show.setAttribute("aria-pressed", String(!hidden));
    show.textContent = say(hidden ? "show" : "hide");
  });
}

function submit(event, card) {
  event.preventDefault();
  if (!isSteady(card) || "sending" in card.dataset) return;
  const form = event.target;
  const pressed = event.submitter?.name === "response" ? event.submitter : null;
  if (pressed && form.dataset.pressed && form.dataset.pressed !== place(pressed)) form.elements.submission_id.value = fresh();
  if (pressed) form.dataset.pressed = place(pressed);
  send(card, new URLSearchParams(new FormData(form, pressed)), form.action);
}

const place = (button) => String([...button.parentElement.children].indexOf(button));

async function send(card, body, action) {
  busy(card, true);
  const reply = await reach(action, body);
  if (reply === null) {
    tell(card, say("not-known"));
    setTimeout(() => send(card, body, action), AGAIN_MS);
    return;
  }
  busy(card, false);
  if (reply.ok) close(card, say("submitted"), true);
  else if (GONE.has(reply.code)) close(card, reply.message);
  else tell(card, reply.message);
}

// What the server said; null when it is not known whether anything reached it.
async function reach(action, body) {
  try {
    const reply = await post(action, body);
    const said = await reply.json();
    return reply.status >= 500 ? null : { ok: said.status === "success", code: said.error, message: said.message };
  } catch {
    return null;
  }
}

function busy(card, sending) {
  if (sending) card.dataset.sending = "";
  else delete card.dataset.sending;
  one("form", card).setAttribute("aria-busy", String(sending));
  for (const button of all("button", card)) button.disabled = sending;
  const field = one("[data-field]", card);
  if (field) field.readOnly = sending;
  if (sending) tell(card, say("sending"));
}

function tell(card, text) {
  const place = one("[data-fault]", card);
  place.hidden = !text;
  place.textContent = text;
}

// Say how it ended, and let go of everything that was typed; it goes once nothing in it is in use.
function close(card, words, mine = false) {
  const id = card.dataset.feedback;
  shut.add(id);
  notice.over(id);
  const focused = card.contains(document.activeElement);
  card.style.minHeight = `${card.offsetHeight}px`;
  card.dataset.closed = "";
  empty(card);
  const said = made("p", words, { class: "card-end", role: "status", tabindex: "-1" });
  one("form", card).replaceWith(said);
  one(".card-head .end", card)?.remove();
  if (focused) said.focus({ preventScroll: true });
  else if (!mine) announce(words);
  setTimeout(() => whenFree(`${BELOW}, [data-feedbacks]`, () => leave(card)), STAYS_MS);
}

function leave(card) {
  card.remove();
  for (const each of moved()) touch(each);
}

function empty(card) {
  for (const field of all("[data-field]", card)) {
    field.value = "";
    field.defaultValue = "";
    field.remove();
  }
}

// A page that is left keeps no secret that was half typed.
function forget() {
  for (const field of all("input[data-field]")) field.value = "";
}
