// Short names for what every module does with the page.

export const one = (selector, root = document) => root.querySelector(selector);
export const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// An element with text in it; nothing of it is ever read as markup.
export function made(tag, text, attributes = {}) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

// The element with this value in a data attribute, whatever characters the value has.
export const named = (attribute, value, root = document) => one(`[${attribute}="${CSS.escape(value)}"]`, root);

// A page of ours, parsed but not shown; its scripts do not run.
export const parsed = (text) => new DOMParser().parseFromString(text, "text/html");

// Random letters under which one answer may be sent twice.
export function fresh() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// When an element appeared or moved: for a moment after that nothing acts on it.
const since = new WeakMap();
export const SETTLED_MS = 600;
export const touch = (element) => since.set(element, performance.now());
export const isSteady = (element) => performance.now() - (since.get(element) ?? -SETTLED_MS) >= SETTLED_MS;

// The token that every form of this person's carries.
export const token = () => one("meta[name=csrf]")?.content ?? "";

// Send a form as the page's own script, which is answered with documents instead of pages where something is wrong.
export const post = (action, body) =>
  fetch(action, { method: "POST", body, cache: "no-store", headers: { "X-CSRF-Token": token() } });

// What a document says is wrong; null where it is no such document.
export async function problem(reply) {
  if (!reply.headers.get("Content-Type")?.startsWith("application/problem+json")) return null;
  return reply.json();
}
