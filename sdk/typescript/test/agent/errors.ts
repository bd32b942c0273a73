// What the tests look for.

export { type Callback, ExecutionTimedOut } from "../../src/agent.js";
export * from "../../src/errors.js";
