// The list: what ends says so where it stands, what is new waits until it is asked for.
import { all, made, named, one, parsed, touch } from "./dom.js";
import * as clock from "./clock.js";
import * as notice from "./notice.js";
import { release } from "./still.js";
import { announce, say } from "./words.js";

const fresh = new Set();
const held = new Set();
const MOST_ASKED_FOR = 100;

export function start() {
  one("[data-merge]")?.addEventListener("click", merge);
  for (const row of rows()) notice.expect(row.dataset.approval, row.dataset.expires);
}

const place = () => one("[data-rows]");
const rows = () => all("article[data-approval]", place() ?? document.createElement("div"));
const isWaiting = (row) => row.dataset.status === "pending";

// The approvals on this page that wait, as far as the page knows.
export const waiting = () => [...new Set(all('[data-approval][data-status="pending"]').map((each) => each.dataset.approval))];

// Ask what became of those; for a page that was away, and for one that was drawn just before its stream began.
export async function lookAgain(settle) {
  const ids = waiting();
  for (let from = 0; from < ids.length; from += MOST_ASKED_FOR) {
    for (const each of await settledAmong(ids.slice(from, from + MOST_ASKED_FOR))) settle(each);
  }
}

// Which of these approvals have ended, as the stream would say it.
export async function settledAmong(ids) {
  const reply = await fetch(`${document.body.dataset.home}/settled?ids=${ids.join(",")}`, { cache: "no-store" });
  if (!reply.ok) throw new Error("not known");
  return reply.json();
}

export function settled({ approval_id: id, status, words, at }) {
  fresh.delete(id);
  offer();
  const row = place() && named("data-approval", id, place());
  if (!row || !isWaiting(row)) return;
  row.dataset.status = status;
  const end = made("p", "", { class: "end" });
  const state = made("span", "", { class: `state state-${status}` });
  state.append(clock.ended(status, words, at));
  end.append(state);
  one("[data-end]", row)?.replaceWith(end);
  row.classList.add("closed");
  announce(`${words}: ${one("h2", row)?.textContent.trim() ?? ""}`);
}

export function asked({ approval_id: id }) {
  if (!isListOfWaiting() || named("data-approval", id, place())) return;
  fresh.add(id);
  offer();
  announce(counted("new", fresh.size));
}

// After an absence: what waits now and is not on the page is new.
export async function missed() {
  if (!isListOfWaiting()) return;
  const page = await fetched();
  for (const row of all('[data-rows] [data-status="pending"]', page)) {
    const { approval: id, expires } = row.dataset;
    if (named("data-approval", id, place())) continue;
    fresh.add(id);
    notice.asked(id, expires);
  }
  offer();
}

const isListOfWaiting = () => {
  const query = new URLSearchParams(location.search);
  return ["waiting", "all"].includes(place()?.dataset.tab) && !query.has("cursor");
};

function offer() {
  const button = one("[data-merge]");
  if (!button) return;
  const said = [counted("question", held.size), counted("new", fresh.size)].filter(Boolean);
  button.hidden = said.length === 0;
  button.textContent = said.join(", ");
}

const counted = (words, n) => (n ? say(n === 1 ? `${words}-one` : `${words}-many`, { n }) : "");

export const heldBack = () => [...held];

// A short-lived question is held back, as it would move what is in use; or no longer.
export function hold(id, isHeld) {
  if (isHeld === held.has(id)) return;
  if (isHeld) held.add(id);
  else held.delete(id);
  offer();
}

async function fetched() {
  const reply = await fetch(location.href, { cache: "no-store" });
  if (!reply.ok || reply.redirected) throw new Error("no page");
  return parsed(await reply.text());
}

// Put the page's rows in their present order; those that stand already stay the same elements.
async function merge() {
  const button = one("[data-merge]");
  release();
  if (!fresh.size) return;
  button.disabled = true;
  try {
    put(await fetched());
    fresh.clear();
    offer();
  } catch {
    button.textContent = say("merge-failed");
  } finally {
    button.disabled = false;
  }
}

function put(page) {
  const before = rows();
  const kept = new Map(before.map((row) => [row.dataset.approval, row]));
  const after = all("[data-rows] > article", page).map((row) => same(kept.get(row.dataset.approval), row));
  const hadFocus = document.activeElement === one("[data-merge]");
  place().replaceChildren(...after);
  for (const [index, row] of after.entries()) if (before[index] !== row) touch(row);
  for (const row of after) row.classList.toggle("fresh", !kept.has(row.dataset.approval));
  for (const part of [".pages", "[data-empty]"]) swap(part, page);
  clock.draw(place());
  for (const row of after.filter(isWaiting)) notice.expect(row.dataset.approval, row.dataset.expires);
  if (hadFocus) one("h2 a", after.find((row) => !kept.has(row.dataset.approval)) ?? place())?.focus({ preventScroll: true });
}

const same = (kept, row) => (kept && kept.dataset.status === row.dataset.status ? kept : document.adoptNode(row));

function swap(selector, page) {
  const [old, now] = [one(selector), one(selector, page)];
  if (old && now) old.replaceWith(document.adoptNode(now));
  else if (old) old.remove();
  else if (now) place().after(document.adoptNode(now));
}
