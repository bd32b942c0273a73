/** The package as people get it: built and packed in a directory of its own, and installed from there. */

import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const HERE = fileURLToPath(new URL("../../../", import.meta.url));
const SOURCES = ["src", "scripts", "package.json", "tsconfig.json", "tsconfig.build.json", "README.md", "LICENSE"];
const MODULES = join(HERE, "node_modules");
const TSC = join(MODULES, "typescript", "bin", "tsc");
const LONGEST_MS = 40_000;

/** What a program may take for granted: libraries of the language, and packages of types. */
export interface Assumed {
  readonly lib: readonly string[];
  readonly types: readonly string[];
}

/** A directory for one test, to be closed at its end. */
export class Workshop {
  readonly #root = realpathSync(mkdtempSync(join(tmpdir(), "holdshort-pack-")));

  /** The tarball of these sources; made beside them, so that nobody else's build is in the way. */
  async packed(): Promise<string> {
    const copy = this.#made("package");
    for (const name of SOURCES) cpSync(join(HERE, name), join(copy, name), { recursive: true });
    symlinkSync(MODULES, join(copy, "node_modules"));
    await this.run(copy, "npm", "pack", "--pack-destination", this.#root);
    return join(this.#root, readdirSync(this.#root).find((file) => file.endsWith(".tgz")) ?? "nothing was packed");
  }

  /** A fresh project with nothing but this tarball, installed without a network and without a cache. */
  async installed(tarball: string): Promise<string> {
    const project = this.#made("project");
    writeFileSync(join(project, "package.json"), JSON.stringify({ name: "project", private: true, type: "module" }));
    await this.run(project, "npm", "install", "--offline", "--no-audit", "--no-fund", tarball);
    return project;
  }

  /** Compiles a program in the project; the types of all libraries are checked with it. */
  async compiled(project: string, program: string, assumed: Assumed): Promise<void> {
    const strictest = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true };
    const output = { target: "ES2022", module: "NodeNext", skipLibCheck: false };
    const compilerOptions = { ...strictest, ...output, ...assumed, typeRoots: [join(MODULES, "@types")] };
    writeFileSync(join(project, "program.ts"), program);
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.ts"] }));
    await this.run(project, process.execPath, TSC, "-p", ".");
  }

  /** What a program wrote; rejects with all of it when the program failed or took too long. */
  async run(cwd: string, program: string, ...args: string[]): Promise<string> {
    const npm = { npm_config_cache: join(this.#root, "cache"), npm_config_update_notifier: "false" };
    const env = { PATH: process.env["PATH"] ?? "", HOME: this.#root, ...npm };
    try {
      return (await promisify(execFile)(program, args, { cwd, env, timeout: LONGEST_MS })).stdout;
    } catch (error) {
      const { stdout, stderr } = error as { stdout?: string; stderr?: string };
      throw new Error(`${program} ${args.join(" ")} failed:\n${stdout ?? ""}\n${stderr ?? String(error)}`);
    }
  }

  /** Removes everything that was made. */
  close(): void {
    rmSync(this.#root, { recursive: true, force: true });
  }

  #made(name: string): string {
    const path = join(this.#root, name);
    mkdirSync(path);
    return path;
  }
}
