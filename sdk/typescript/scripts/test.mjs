// Runs the built tests: all of them, or those whose path holds one of the arguments (`npm test -- pure`).
//
// The list is made from the sources, so what an earlier build left behind in .build/ is not run, and it needs no
// pattern, which Node 20 would not understand.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";

// Of a whole file on Node 20, of each test in it on newer ones.
const LONGEST_MS = 120_000;

const wanted = process.argv.slice(2);
const files = readdirSync("test", { recursive: true })
  .filter((file) => file.endsWith(".test.ts"))
  .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)))
  .sort()
  .map((file) => join(".build", "test", file.replace(/\.ts$/, ".js")));

if (files.length === 0) {
  console.error("No test has such a name.");
  process.exit(1);
}
const options = ["--enable-source-maps", "--test", "--test-reporter=spec", `--test-timeout=${LONGEST_MS}`];
const run = spawnSync(process.execPath, [...options, ...files], { stdio: "inherit" });
process.exit(run.status ?? 1);
