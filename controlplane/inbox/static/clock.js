// Countdowns and local times; the server's clock counts, as a browser's may be off.
import { all } from "./dom.js";
import { say } from "./words.js";

const HOUR = 3600;
let ahead = 0;

export const now = () => Date.now() + ahead;
export function set(serverTime) {
  const read = Date.parse(serverTime);
  if (Number.isFinite(read)) ahead = read - Date.now();
}

export function start() {
  draw();
  setInterval(draw, 1000);
}

export function draw(root = document) {
  for (const element of all("time[data-countdown]", root)) count(element);
  for (const element of all("time[data-local]:not([data-drawn])", root)) localise(element);
}

function count(element) {
  const seconds = (Date.parse(element.dateTime) - now()) / 1000;
  if (!Number.isFinite(seconds)) return;
  const text = seconds <= 0 ? say("now") : say("in", { time: lasting(seconds) });
  if (element.textContent !== text) element.textContent = text;
  const urgency = seconds <= 0 ? "over" : seconds < HOUR ? "soon" : "far";
  const end = element.closest(".end");
  if (end && !end.classList.contains(urgency)) {
    end.classList.remove("far", "soon", "over");
    end.classList.add(urgency);
  }
}

function lasting(seconds) {
  if (seconds < 100) return say("seconds", { n: Math.floor(seconds) });
  if (seconds < 2 * HOUR) return say("minutes", { n: Math.floor(seconds / 60) });
  if (seconds < 48 * HOUR) return say("hours", { n: Math.floor(seconds / HOUR) });
  return say("days", { n: Math.floor(seconds / (24 * HOUR)) });
}

function localise(element) {
  const at = new Date(element.dateTime);
  element.dataset.drawn = "";
  if (Number.isNaN(at.getTime()) || element.dataset.local === "ago") return;
  element.textContent = local(at);
}

// The hour for a moment of today, otherwise with its day.
export function local(at) {
  const today = at.toDateString() === new Date(now()).toDateString();
  const day = today ? {} : { day: "numeric", month: "short", year: "numeric" };
  return at.toLocaleString(undefined, { ...day, hour: "2-digit", minute: "2-digit" });
}

// An element that shows a moment in local time, and exactly on hover.
export function moment(at) {
  const element = document.createElement("time");
  element.dateTime = at;
  element.dataset.local = "";
  element.title = at.replace("T", " ").replace("Z", " UTC");
  localise(element);
  return element;
}

// How an approval ended, with when: what nobody answered has its moment in the middle.
export function ended(status, words, at) {
  const said = document.createElement("strong");
  const [first, ...rest] = status === "expired" ? words.split(", ") : [words];
  said.append(first, status === "expired" ? " " : ", ", moment(at), ...rest.map((each) => `, ${each}`));
  return said;
}
