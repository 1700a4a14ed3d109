/** Requests a dispatcher's state over HTTP, with an error for each kind of failure. */
import { innermostCause, LeatError, withShownUrls } from "../../core/error.ts";
import { shownPath } from "../../core/shown_text.ts";
import type { DispatcherDescription } from "../../mod.ts";
import { DiallerSide } from "../../transport/web_socket/tokens/proof.ts";
import { tlsRemedy } from "../../transport/web_socket/remedies.ts";

/** Time limit for the answer, in ms. */
const TIMEOUT_MS = 10_000;

/** The credentials of the request. */
interface Credentials {
  readonly token?: string;
  /** Certificates of authorities in PEM, in addition to the usual ones. */
  readonly ca?: string;
}

/**
 * Fetches the state of the dispatcher at a `ws:`, `wss:`, `http:` or `https:` address.
 * @throws {LeatError} `invalid_argument` for an invalid address; `unavailable` when nothing answers
 * there; `unauthenticated` when the dispatcher requires another token, or cannot prove that it knows
 * this one; `permission_denied` when the token's role may not see the state; `resource_exhausted` when
 * the token's identity sends too many requests; `failed_precondition` when the server is no dispatcher.
 */
export async function askForState(
  address: string,
  { token, ca }: Credentials = {},
): Promise<DispatcherDescription> {
  const url = stateUrl(address);
  const shown = shownPath(address);
  using client = Deno.createHttpClient(ca === undefined ? {} : { caCerts: [ca] });
  let response: Response;
  let state: DispatcherDescription | undefined;
  const side = token === undefined
    ? undefined
    : new DiallerSide(token, "service", url.origin.replace(/^http/, "ws"));
  let isProved = side === undefined;
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const request = (headers: Readonly<Record<string, string>>) =>
      fetch(url, { client, headers, signal, redirect: "manual" });
    response = await request({});
    const challenge = response.status === 401 ? response.headers.get("www-authenticate") : null;
    const authorization = side?.answer(challenge ?? "");
    if (authorization !== undefined) {
      await response.body?.cancel();
      response = await request({ authorization });
      isProved ||= side!.isProved(response.headers.get("authentication-info"));
    }
    if (response.ok) state = stateOf(await response.text());
    else await response.body?.cancel();
  } catch (thrown) {
    const cause = withShownUrls(thrown);
    const why = reasonOf(cause);
    const remedy = tlsRemedy(address, why) ??
      "check the address, and that `deno task dispatcher` runs there";
    throw new LeatError("unavailable", `No dispatcher answers at ${shown} (${why}); ${remedy}`, {
      cause,
    });
  }
  if (state === undefined) throw refusal(shown, response.status, token);
  if (!isProved) throw notTrusted(shown);
  return state;
}

/**
 * The URL of a dispatcher's state.
 * @throws {LeatError} `invalid_argument` for an invalid address.
 */
export function stateUrl(address: string): URL {
  const url = URL.parse(address.replace(/^ws(s?):/, "http$1:"));
  if (url !== null && /^https?:$/.test(url.protocol)) return new URL("/state", url);
  throw new LeatError(
    "invalid_argument",
    `A dispatcher's address is ws://host:port or wss://host:port, not "${shownPath(address)}"`,
  );
}

/** The state in a server's answer; undefined if the answer is something else, such as a web page. */
function stateOf(answer: string): DispatcherDescription | undefined {
  try {
    const state = JSON.parse(answer);
    return Array.isArray(state?.workers) && Array.isArray(state.jobs) ? state : undefined;
  } catch {
    return undefined;
  }
}

/** The error for a server that has not proved that it knows the token: it may be an impostor. */
function notTrusted(address: string): LeatError {
  return new LeatError(
    "unauthenticated",
    `The dispatcher at ${address} does not know the token: start it with the same one, or give none ` +
      "here if it has none",
  );
}

function refusal(address: string, status: number, token: string | undefined): LeatError {
  switch (status) {
    case 401:
      return new LeatError(
        "unauthenticated",
        `The dispatcher at ${address} ${
          token === undefined
            ? "wants a token: give it with --token-file"
            : "has another token: is there more than one line in the file?"
        }`,
      );
    case 403:
      return new LeatError(
        "permission_denied",
        `The dispatcher at ${address} shows its state to the roles admin, worker and viewer only, and ` +
          "this token has another role: give a viewer's token, or a worker's to `deno task autoscale`",
      );
    case 429:
      return new LeatError(
        "resource_exhausted",
        `The dispatcher at ${address} has reached its limit of requests for one token: ` +
          "ask again later, or give each program its own token",
      );
    case 502: // These two are of a proxy in front of it.
    case 504:
    case 503:
      return new LeatError("unavailable", `The dispatcher at ${address} is starting or stopping`);
    default:
      return new LeatError(
        "failed_precondition",
        `What answers at ${address} (HTTP ${status}) is no dispatcher: is it a worker's address?`,
      );
  }
}

/** The message of the innermost cause, which is the system's. */
function reasonOf(error: unknown): string {
  const inner = innermostCause(error);
  return inner instanceof Error ? inner.message : String(inner);
}
