// A request's body, as far as it may go.

import { joined } from "../bytes.js";

/**
 * The bytes of a request.
 *
 * @param request whose body was not read yet.
 * @param limit how many bytes it may have.
 * @returns undefined for one that is longer; the rest of it is not read.
 */
export async function bodyWithin(request: Request, limit: number): Promise<Uint8Array | undefined> {
  if (request.body === null) return new Uint8Array();
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = request.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return joined(...parts);
    size += value.length;
    if (size > limit) {
      await reader.cancel().catch(() => undefined);
      return undefined;
    }
    parts.push(value);
  }
}
