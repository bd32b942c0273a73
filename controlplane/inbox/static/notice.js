// How many wait, where it is seen without the page: title, icon, and notifications for those who want them.
import { all, one } from "./dom.js";
import * as clock from "./clock.js";
import { say } from "./words.js";

const SETTLES_MS = 1000;
const LATE_SHARE = 0.2;
const CHECK_MS = 5000;

const title = document.title;
const plainIcon = one("[data-favicon]")?.getAttribute("href") ?? "";
const counts = { waiting: 0, feedback: 0 };
const fresh = new Map();
const reminders = new Map();

export function start() {
  for (const button of all("[data-notify]")) prepare(button);
  setInterval(remind, CHECK_MS);
}

// Show how many wait; what is not said stays as it was.
export function count(said) {
  for (const name of Object.keys(counts)) {
    if (typeof said[name] !== "number") continue;
    counts[name] = said[name];
    for (const place of all(`[data-count="${name}"]`)) place.textContent = said[name];
  }
  const sum = counts.waiting + counts.feedback;
  document.title = sum ? `(${sum}) ${title}` : title;
  mark(sum > 0);
}

function mark(waits) {
  const icon = one("[data-favicon]");
  if (!icon || icon.hasAttribute("data-waits") === waits) return;
  icon.toggleAttribute("data-waits", waits);
  icon.href = waits ? plainIcon.replace(/favicon\.svg.*$/, "favicon-waiting.svg") : plainIcon;
}

// Something waits from now on; what is over within a second was decided by no person and is nothing to tell.
export function asked(id, expiresAt) {
  if (reminders.has(id)) return;
  expect(id, expiresAt);
  fresh.set(id, setTimeout(() => tell(id), SETTLES_MS));
}

// Something waits already: no news, but there may be a reminder.
export function expect(id, expiresAt) {
  const left = Date.parse(expiresAt) - clock.now();
  if (left > 0 && !reminders.has(id)) reminders.set(id, Date.parse(expiresAt) - left * LATE_SHARE);
}

export function over(id) {
  clearTimeout(fresh.get(id));
  fresh.delete(id);
  reminders.delete(id);
}

function tell(id) {
  fresh.delete(id);
  notify("notice-title", "notice-new");
}

function remind() {
  const late = [...reminders].filter(([, at]) => at <= clock.now()).map(([id]) => id);
  for (const id of late) reminders.set(id, Infinity);
  if (late.length) notify("notice-title", "notice-late");
}

// Never what was asked, by whom or how it was answered: a notification is seen on locked screens and kept by others.
function notify(heading, words) {
  if (!document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
  const shown = new Notification(say(heading), { body: say(words), tag: "holdshort" });
  shown.onclick = () => {
    window.focus();
    shown.close();
  };
}

function prepare(button) {
  if (!("Notification" in window)) return;
  const draw = () => {
    button.hidden = Notification.permission !== "default";
    for (const place of all("[data-notify-state]")) place.textContent = say(`notify-${Notification.permission}`);
  };
  button.addEventListener("click", () => Notification.requestPermission().then(draw));
  draw();
}
