/** White space as the control plane counts it; `trim` takes a byte order mark too, and no U+0085. */

const SPACE = "\\t-\\r\\u001c- \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const BEFORE = new RegExp(`^[${SPACE}]+`);
// Begins at the first space of a run only, so that long runs inside a text cost no more than their length.
const AFTER = new RegExp(`(?<![${SPACE}])[${SPACE}]+$`);

/** A text without the white space around it. */
export function withoutSpace(text: string): string {
  return text.replace(BEFORE, "").replace(AFTER, "");
}
