// Removes directories, on every system alike: `node scripts/clean.mjs dist`.
import { rmSync } from "node:fs";

for (const directory of process.argv.slice(2)) rmSync(directory, { recursive: true, force: true });
