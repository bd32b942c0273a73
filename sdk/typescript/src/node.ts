/** Serving an agent with `node:http`: what waits is handed back first, what runs may finish. */

export { serve, type Served, type ServeOptions } from "./agent/serving.js";
