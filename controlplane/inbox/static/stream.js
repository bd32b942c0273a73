// The live stream: opened again whenever it is lost, and said when it is.
import { one } from "./dom.js";
import { say } from "./words.js";

const SILENT_MS = 40_000;
const LONGEST_MS = 30_000;
const NAMES = ["hello", "settled", "asked", "counts", "feedback_asked", "feedback_resolved", "beat"];

let source = null;
let hear = () => {};
let failures = 0;
let again = 0;
let watch = 0;

export function start(handlers) {
  hear = (name, data) => handlers[name]?.(data);
  addEventListener("online", open);
  addEventListener("offline", () => show("offline"));
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => event.persisted && open());
  document.addEventListener("visibilitychange", () => (document.hidden ? yieldInBackground() : reopen()));
  open();
}

// What the state is said with: `offline`, `reconnecting`, `signed-out`, or nothing while all is well.
export function show(state) {
  const place = one("[data-connection]");
  if (!place) return;
  place.hidden = !state;
  place.dataset.state = state;
  place.textContent = state ? say(state) : "";
}

function open() {
  close();
  source = new EventSource(document.body.dataset.events);
  for (const name of NAMES) source.addEventListener(name, (event) => take(name, event));
  source.onerror = lost;
  guard();
}

function close() {
  clearTimeout(again);
  clearTimeout(watch);
  source?.close();
  source = null;
}

// Begin anew in a while: what the stream said could not be followed up.
export function retry() {
  lost();
}

const reopen = () => source ?? open();

function take(name, event) {
  guard();
  if (name === "hello") {
    failures = 0;
    show("");
  }
  if (name !== "beat") hear(name, JSON.parse(event.data));
}

// A connection may be dead without a sign of it; the server sends something every 15 s.
function guard() {
  clearTimeout(watch);
  watch = setTimeout(lost, SILENT_MS);
}

async function lost() {
  close();
  failures += 1;
  show(navigator.onLine === false ? "offline" : "reconnecting");
  const pause = Math.min(LONGEST_MS, 500 * 2 ** Math.min(failures, 7)) * (0.5 + Math.random() / 2);
  again = setTimeout(open, pause);
  if (failures > 1 && (await isSignedOut())) {
    close();
    show("signed-out");
  }
}

async function isSignedOut() {
  try {
    const reply = await fetch(`${document.body.dataset.home}/settled`, { cache: "no-store" });
    return reply.status === 401 || reply.status === 403;
  } catch {
    return false;
  }
}

// A browser opens six connections to a server at most, and each stream holds one: of the hidden pages one keeps its own.
async function yieldInBackground() {
  if (!navigator.locks) return;
  await navigator.locks.request("holdshort.background", { ifAvailable: true }, async (lock) => {
    if (!lock) return close();
    await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
    return undefined;
  });
}
