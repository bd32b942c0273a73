// What the script says stands in the page's template, like all its words.
import { one } from "./dom.js";

// The words under a name, with {these} filled in.
export function say(name, values = {}) {
  const words = one(`[data-word="${name}"]`, one("template#words")?.content ?? document);
  return (words?.textContent ?? "").replace(/\{(\w+)\}/g, (_, key) => String(values[key] ?? ""));
}

// Tell those who hear the page; what comes close together is said in one go.
let waiting = [];
export function announce(text) {
  if (!text) return;
  waiting.push(text);
  if (waiting.length === 1) setTimeout(speak, 150);
}

function speak() {
  const place = one("[data-announce]");
  if (place) place.textContent = waiting.join(". ");
  waiting = [];
}
