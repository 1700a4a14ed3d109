/**
 * What a user function was denied, told so that its author knows what it asked for, and the operator
 * of the worker how to grant it.
 *
 * @module
 */
import { dirname } from "node:path/posix";
import { LeatError, type WireError } from "../../core/error.ts";

/** Deno's own sentence, which names flags of Deno. */
const DENO_SENTENCE =
  /Requires (\w+) access(?: to "([^"]*)")?(?:, run again with the --allow-[\w-]+ flag)?/;

/** What says that modules and functions are shut off for all. */
const SHUT_SENTENCE = "whatever a worker grants";

/** Whether an error says that something was denied, whatever has wrapped it. */
export function isDenial(error: unknown): boolean {
  const { code, message } = LeatError.from(error);
  return code === "permission_denied" || DENO_SENTENCE.test(message) ||
    message.includes(SHUT_SENTENCE);
}

/**
 * The error, with the worker's flag in the place of Deno's, as one line: what wraps what would name
 * Deno's flags again, level by level, and the worker's own program instead of the function.
 */
export function explainDenial(error: WireError): WireError {
  if (!isDenial(LeatError.fromWire(error))) return error;
  const { cause: _levels, ...told } = error;
  const message = explained(error);
  return { ...told, code: "permission_denied", message, stack: `LeatError: ${message}` };
}

/** Where the message has words of its own for what Deno said, that is found among the causes. */
function explained(error: WireError): string {
  const message = error.message.replaceAll("LeatError: ", "");
  const own = DENO_SENTENCE.exec(message);
  if (own !== null) return message.replace(own[0], `it needs ${denied(own)}`);
  for (let cause = error.cause; cause !== undefined; cause = cause.cause) {
    const found = DENO_SENTENCE.exec(cause.message);
    if (found !== null) return `${message} On a worker: it needs ${denied(found)}`;
  }
  return message;
}

function denied([, kind = "", what = ""]: RegExpExecArray): string {
  const asked = what === "" ? `${kind} access` : `${kind} access to "${what}"`;
  return `${asked}, which this worker does not grant (${remedy(kind, what)})`;
}

function remedy(kind: string, what: string): string {
  switch (kind) {
    case "read":
      return `its operator can, with --data-root=${dirname(what)}`;
    case "write":
      return `its operator can, with --allow-write=${dirname(what)}`;
    case "net":
      return `its operator can, with --allow-net=${what}`;
    case "import":
      return `its operator can, with --allow-udf-import=${what}`;
    default:
      return "no worker does that runs functions in a sandbox, which --no-sandbox turns off";
  }
}
