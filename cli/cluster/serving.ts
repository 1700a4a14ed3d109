/** Runs a server until the program is asked to stop, or the server fails. */
import { causesOf, LeatError, type LeatErrorCode } from "../../core/error.ts";
import { shownText } from "../../core/shown_text.ts";
import { UsageError } from "../lib/args.ts";
import { NO_DISPATCHER } from "../../transport/web_socket/connector.ts";
import { NO_TOKEN } from "../../transport/web_socket/server.ts";
import type { StopRequests } from "../lib/stop_requests.ts";

/** Error codes of a start that settings cause, not the machine or other nodes. */
const SETTINGS_ERRORS: ReadonlySet<LeatErrorCode> = new Set([
  "invalid_argument",
  "not_found",
  "permission_denied",
]);

/** Error codes with which a dispatcher refuses a token. */
const TOKEN_REFUSALS: ReadonlySet<LeatErrorCode> = new Set([
  "unauthenticated",
  "permission_denied",
]);

/** A server that can fail and be closed. */
interface Serving {
  readonly failed: Promise<LeatError>;
  close(): Promise<void>;
}

/**
 * Starts a server.
 * @throws {UsageError} for invalid settings.
 */
export async function startServing<S>(start: () => Promise<S>): Promise<S> {
  try {
    return await start();
  } catch (error) {
    if (!(error instanceof LeatError)) throw error;
    if (!SETTINGS_ERRORS.has(error.code) && error.details?.reason !== NO_TOKEN) throw error;
    throw new UsageError(error.message, { cause: error });
  }
}

/** A usage error if the token or the dispatcher's address is a wrong setting; else the error itself. */
export function asSettingsError(error: LeatError): LeatError {
  const isWrong = TOKEN_REFUSALS.has(error.code) || causesOf(error).some(isNoDispatcher);
  return isWrong ? new UsageError(error.message, { cause: error }) : error;
}

function isNoDispatcher(error: Error): boolean {
  return error instanceof LeatError && error.details?.reason === NO_DISPATCHER;
}

/**
 * Waits until the program is asked to stop or the server fails, then closes the server.
 * @param onStopping Called before the server is closed, which may take minutes, with what stops it.
 * @throws The error with which the server fails.
 */
export async function serveUntilStopped(
  server: Serving,
  requests: Pick<StopRequests, "first">,
  onStopping: (why: string) => void,
): Promise<void> {
  const end = await Promise.race([requests.first, server.failed]);
  // The message of an error may have several lines, and texts of other programs.
  onStopping(typeof end === "string" ? end : shownText(`failed: ${end.message}`));
  await server.close();
  if (typeof end !== "string") throw end;
}
