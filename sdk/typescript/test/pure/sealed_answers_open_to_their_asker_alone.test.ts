import assert from "node:assert/strict";
import { test } from "node:test";

import { newLock, seal } from "../../src/seals.js";
import { allHold, vectors } from "./vectors.js";

interface Case {
  name?: string;
  unique_id: string;
  enc: string;
  ct: string;
  answer?: string;
}

interface File {
  private_key: string;
  public_key: string;
  opens: Case[];
  refused: Case[];
}

const file = vectors<File>("feedback_sealing");
const cases = [...file.opens, ...file.refused].map((each) => [each.name ?? each.unique_id, each] as const);
const privateKey = Buffer.from(file.private_key, "base64");
const unreadable = { name: "UnreadableAnswer", code: "unreadable_answer" };

test("no seal was lost", () => {
  assert.deepEqual([file.opens.length, file.refused.length], [5, 3]);
});

allHold("feedback_sealing", 8, cases, async ({ unique_id: uniqueId, enc, ct, answer }) => {
  const lock = await newLock(privateKey);
  assert.equal(lock.publicKey, file.public_key);
  if (answer === undefined) {
    await assert.rejects(lock.open(uniqueId, enc, ct), unreadable);
    return;
  }
  assert.equal(await lock.open(uniqueId, enc, ct), answer);
  const own = await seal(file.public_key, uniqueId, answer);
  assert.equal(await lock.open(uniqueId, own.enc, own.ct), answer);
});

test("answers of every length come back as they were", async () => {
  const lock = await newLock();
  for (const length of [0, 1, 63, 64, 65, 16_384]) {
    const answer = "\ufeff".repeat(length % 2) + "x".repeat(length);
    const { enc, ct } = await seal(lock.publicKey, "otp-1", answer);
    assert.equal((Buffer.from(ct, "base64").length - 16) % 64, 0);
    assert.equal(await lock.open("otp-1", enc, ct), answer);
  }
});

test("hostile seals are only unreadable", async () => {
  const lock = await newLock();
  const lowOrder = Buffer.alloc(32).toString("base64");
  const one = Buffer.from([1, ...new Uint8Array(31)]).toString("base64");
  const hostile = [
    ["", ""],
    ["A", "A"],
    ["\u00e9", "AAAA"],
    ["AAAA".repeat(20), "AAAA"],
    [`${"A".repeat(43)}=`, "A".repeat(64)],
    [lowOrder, "A".repeat(128)],
    [one, "A".repeat(128)],
  ] as const;
  for (const [enc, ct] of hostile) await assert.rejects(lock.open("otp-1", enc, ct), unreadable);
});

test("what was sealed to a forgotten key, or to another, opens nowhere", async () => {
  const [lock, other] = [await newLock(), await newLock()];
  const { enc, ct } = await seal(lock.publicKey, "otp-1", "482913");
  await assert.rejects(other.open("otp-1", enc, ct), unreadable);
  lock.forget();
  await assert.rejects(lock.open("otp-1", enc, ct), unreadable);
});

test("nothing is sealed to what is no key", async () => {
  for (const key of ["", "AAAA", "not base64", Buffer.alloc(32).toString("base64")]) {
    await assert.rejects(seal(key, "otp-1", "482913"));
  }
  await assert.rejects(newLock(new Uint8Array(31)), RangeError);
});

test("neither a lock nor its errors show what is in them", async () => {
  const lock = await newLock(privateKey);
  assert.deepEqual(Object.keys(lock), ["publicKey"]);
  const { enc, ct } = await seal(lock.publicKey, "otp-1", "482913");
  const error: unknown = await lock.open("otp-2", enc, ct).catch((thrown: unknown) => thrown);
  assert.equal((error as Error).cause, undefined);
});
