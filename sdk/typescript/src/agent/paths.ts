// Where an agent is reached.

/** Where decisions are pushed. */
export const CALLBACK_PATH = "/webhooks/approval";
/** Followed by the name of a reasoner. */
export const REASONERS = "/reasoners/";
/** Says that the agent is there. */
export const HEALTH_PATH = "/health";
/** Ends a run; its id is the first group. */
export const CANCEL = /^\/_internal\/executions\/([^/]+)\/cancel$/;

/**
 * The path of a request below where the agent is mounted, without a slash at its end.
 *
 * @param url of the request.
 * @param baseURL at which the agent is reached; a path in it is where it is mounted.
 */
export function pathBelow(url: string, baseURL: string | undefined): string {
  const path = decoded(new URL(url).pathname);
  const root = baseURL === undefined ? "" : decoded(new URL(baseURL).pathname).replace(/\/+$/, "");
  const below = root !== "" && path.startsWith(`${root}/`) ? path.slice(root.length) : path;
  return below.replace(/\/+$/, "");
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
