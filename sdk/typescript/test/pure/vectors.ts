/** The vectors that every implementation runs, read where all of them read them. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const VECTORS = new URL("../../../../conformance/", import.meta.url);

/** One file of sdk/conformance as it stands there. */
export function vectors<T>(family: string): T {
  return JSON.parse(readFileSync(new URL(`${family}.json`, VECTORS), "utf8")) as T;
}

/**
 * Runs all cases of one family as tests of their own, and says how many passed when all of them did.
 *
 * @param family the file's name without its ending.
 * @param count how many there must be, so that none is lost unseen.
 * @param cases what they are called, and the case.
 * @param check throws when the case does not hold.
 */
export function allHold<T>(
  family: string,
  count: number,
  cases: readonly (readonly [name: string, of: T])[],
  check: (of: T) => void | Promise<void>,
): void {
  test(`all vectors of ${family} hold`, async (all) => {
    let ran = 0;
    for (const [name, of] of cases) {
      await all.test(name, async () => {
        await check(of);
        ran += 1;
      });
    }
    assert.equal(ran, count);
    console.log(`holdshort-vectors: ${JSON.stringify({ language: "typescript", family, ran })}`);
  });
}
