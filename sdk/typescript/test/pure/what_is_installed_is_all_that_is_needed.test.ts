import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { after, before, test } from "node:test";

import { type Assumed, Workshop } from "./packing.js";

interface Manifest {
  exports: Record<string, { types: string; default: string }>;
  dependencies?: unknown;
}

const WEB: Assumed = { lib: ["ES2022", "DOM", "DOM.Iterable"], types: [] };
const NODE: Assumed = { lib: ["ES2022"], types: ["node"] };
const IMPORTED = /(?:\bfrom|\bimport)\s*\(?\s*["']([^"']+)["']/g;
const AGENT = ["node:async_hooks"];
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  ".": [],
  "./webhooks": [],
  "./agent": AGENT,
  "./node": [...AGENT, "node:http", "node:net", "node:process", "node:stream", "node:stream/web"],
};
const ANYWHERE = `
import { ApprovalClient, type ApprovalResult } from "@holdshort/sdk";
import { Agent } from "@holdshort/sdk/agent";
import { signWebhook, verifyWebhook } from "@holdshort/sdk/webhooks";

const client = new ApprovalClient({ baseURL: "http://127.0.0.1:1", nodeId: "n" });
export const asked: Promise<ApprovalResult> | undefined = undefined;
const agent = new Agent({ nodeId: "n", controlPlaneURL: "http://127.0.0.1:1" });
const handler: (request: Request) => Promise<Response> = agent.handler;
const headers = await signWebhook("a secret", "{}", { webhookId: "m" });
const { scheme } = await verifyWebhook(headers, "{}", ["a secret"]);
console.log(JSON.stringify([scheme, typeof client.requestApproval, typeof handler]));
`;
const ON_NODE = `
import { serve } from "@holdshort/sdk/node";
${ANYWHERE}
console.log(typeof serve);
`;

const workshop = new Workshop();
let tarball = "";
let project = "";
let installed = "";
let manifest: Manifest = { exports: {} };

before(async () => {
  tarball = await workshop.packed();
  project = await workshop.installed(tarball);
  installed = join(project, "node_modules", "@holdshort", "sdk");
  manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as Manifest;
});

after(() => {
  workshop.close();
});

test("the tarball holds what was built, and what it is, and nothing else", () => {
  assert.deepEqual(readdirSync(installed).sort(), ["LICENSE", "README.md", "dist", "package.json"]);
  const built = readdirSync(join(installed, "dist"), { recursive: true, encoding: "utf8" });
  const files = built.filter((name) => name.includes("."));
  assert.deepEqual(files.filter((name) => !/\.(?:js|js\.map|d\.ts)$/.test(name)), []);
  for (const name of files.filter((each) => each.endsWith(".js"))) {
    assert.ok(files.includes(`${name}.map`) && files.includes(name.replace(/js$/, "d.ts")), name);
  }
});

test("its types use no word that compilers before TypeScript 5.7 do not know", () => {
  for (const name of readdirSync(join(installed, "dist"), { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".d.ts")) continue;
    assert.doesNotMatch(readFileSync(join(installed, "dist", name), "utf8"), /Uint8Array<|NonShared/, name);
  }
});

test("nothing is installed with it", () => {
  assert.equal(manifest.dependencies, undefined);
  assert.deepEqual(readdirSync(join(project, "node_modules")).filter((name) => !name.startsWith(".")), ["@holdshort"]);
});

test("every entry imports what it may and nothing else, and its types do not either", () => {
  assert.deepEqual(Object.keys(manifest.exports).sort(), Object.keys(ALLOWED).sort());
  for (const [entry, doors] of Object.entries(manifest.exports)) {
    for (const door of Object.values(doors)) {
      const foreign = importedFrom(join(installed, door));
      const unexpected = [...foreign].filter((name) => !ALLOWED[entry]?.includes(name));
      assert.deepEqual(unexpected, [], `${entry} (${door})`);
    }
  }
});

test("clients and agents compile without Node's types, and run", async () => {
  await workshop.compiled(project, ANYWHERE, WEB);
  assert.deepEqual(await said(), ['["standard","function","function"]']);
});

test("programs that use all of it compile with Node's types alone, and run", async () => {
  await workshop.compiled(project, ON_NODE, NODE);
  assert.deepEqual(await said(), ['["standard","function","function"]', "function"]);
});

async function said(): Promise<string[]> {
  return (await workshop.run(project, process.execPath, "program.js")).trim().split("\n");
}

/** What is imported by name from a file and all that it reaches by path. */
function importedFrom(start: string): Set<string> {
  const foreign = new Set<string>();
  const reached = new Set([start]);
  for (const file of reached) {
    for (const [, name = ""] of readFileSync(file, "utf8").matchAll(IMPORTED)) {
      if (name.startsWith("./") || name.startsWith("../")) reached.add(beside(file, name));
      else foreign.add(name);
    }
  }
  return foreign;
}

function beside(file: string, name: string): string {
  const path = join(dirname(file), file.endsWith(".d.ts") ? name.replace(/\.js$/, ".d.ts") : name);
  assert.ok(existsSync(path), `${relative(installed, path)} was not packed`);
  return path;
}
