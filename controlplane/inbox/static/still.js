// Nothing moves under a hand or under the focus: what would move it waits until both are elsewhere.
import { all } from "./dom.js";

let pointer = null;

export function start() {
  document.addEventListener("pointerover", (event) => (pointer = event.target), { passive: true });
  document.documentElement.addEventListener("pointerleave", () => left(), { passive: true });
  document.addEventListener("pointerover", changed, { passive: true });
  document.addEventListener("focusout", () => setTimeout(changed));
  document.addEventListener("visibilitychange", changed);
}

const waiting = new Set();

// Call this now if nothing that it moves is in use, otherwise once that is so.
export function whenFree(selectors, act) {
  if (isFree(selectors)) return act();
  waiting.add({ selectors, act });
  return undefined;
}

// Do now whatever waits: somebody asked for it.
export function release() {
  for (const each of [...waiting]) {
    waiting.delete(each);
    each.act();
  }
}

// Whether neither the pointer nor the focus is in any of these places; nobody's is while the page is hidden.
export function isFree(selectors) {
  if (document.hidden) return true;
  return !all(selectors).some((place) => place.contains(document.activeElement) || (pointer && place.contains(pointer)));
}

function left() {
  pointer = null;
  changed();
}

function changed() {
  for (const each of [...waiting]) {
    if (!isFree(each.selectors)) continue;
    waiting.delete(each);
    each.act();
  }
}

// Change the page, and scroll by as much as that moved what is in use, or else what is in the middle of the window.
export function keepPlace(act) {
  const middle = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
  const focus = document.activeElement === document.body ? null : document.activeElement;
  const used = [pointer, focus, middle].find((each) => each?.isConnected && each !== document.documentElement);
  const before = used?.getBoundingClientRect().top;
  act();
  if (used?.isConnected) scrollBy({ top: used.getBoundingClientRect().top - before, behavior: "instant" });
}
