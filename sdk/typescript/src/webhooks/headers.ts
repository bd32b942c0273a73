/** Headers in the shapes in which runtimes hand them over. */

/**
 * Headers as received: pairs, fetch's `Headers`, or an object such as Node's `request.headers`. Only pairs keep a
 * repeated header apart; the others join its values with a comma, and joined signatures do not hold.
 */
export type WebhookHeaders =
  | Iterable<readonly [name: string, value: string]>
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/** One header: its name in lower case, its value without the spaces and tabs around it. */
export type Header = readonly [name: string, value: string];

/** The headers as pairs. */
export function headerPairs(headers: WebhookHeaders): Header[] {
  const pairs = isIterable(headers) ? [...headers] : Object.entries(headers).flatMap(repeated);
  return pairs.map(([name, value]) => [name.toLowerCase(), stripped(value)]);
}

/** A text without the spaces and tabs around it, and without other white space taken for such. */
export function stripped(text: string): string {
  // The end begins at the first of a run only, so that long runs inside cost no more than their length.
  return text.replace(/^[ \t]+/, "").replace(/(?<![ \t])[ \t]+$/, "");
}

function repeated([name, values]: [string, string | readonly string[] | undefined]): Header[] {
  if (values === undefined) return [];
  return (typeof values === "string" ? [values] : values).map((value) => [name, value]);
}

function isIterable(headers: WebhookHeaders): headers is Iterable<Header> {
  return Symbol.iterator in headers;
}
