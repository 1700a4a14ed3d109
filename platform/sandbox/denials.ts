/** Explains a denied permission to the author of a function, and to the operator who may grant it. */
import { dirname } from "node:path/posix";
import { LeatError, type WireError } from "../../core/error.ts";

/** Deno's own sentence, which names flags of Deno. */
const DENO_SENTENCE =
  /Requires (\w+) access(?: to "([^"]*)")?(?:, run again with the --allow-[\w-]+ flag)?/;

/** The system's sentence when the kernel denies what Deno would have allowed. */
const SYSTEM_SENTENCE = /Permission denied \(os error 13\)(?:: \w+ '([^']*)')?/;

/** Deno's sentence when a module names a package: a confined process fetches nothing. */
const PACKAGE_SENTENCE = new RegExp(
  [
    /Failed loading \S+ for package "([^"]*)"[^]*--cached-only is specified\.?/,
    /Could not find constraint '([^']*)' in the list of packages\.?/,
  ].map(({ source }) => source).join("|"),
);

const SENTENCES = [DENO_SENTENCE, SYSTEM_SENTENCE, PACKAGE_SENTENCE];

/** Whether an error is a denial, possibly wrapped. */
export function isDenial(error: unknown): boolean {
  const { code, message } = LeatError.from(error);
  return code === "permission_denied" || SENTENCES.some((sentence) => sentence.test(message));
}

/** The program that denied a permission, and the remedy. */
interface Denier {
  /** `"this worker"` */
  readonly program: string;
  /** How to grant it, as a sentence in brackets. */
  remedy(kind: string, what: string): string;
}

/** Functions of a pipeline that the trainer did not build get no permissions there. */
export const IN_A_TRAINER: Denier = {
  program: "a training process that did not build this pipeline",
  remedy: () =>
    "read it on workers, whose operators grant such things, or trust its author with trustPipeline: true",
};

const ON_A_WORKER: Denier = { program: "this worker", remedy };

/**
 * The error without its causes, and with the worker's flag instead of Deno's. The causes would
 * repeat Deno's flags at each level, and name the worker's program instead of the function.
 */
export function explainDenial(error: WireError, denier: Denier = ON_A_WORKER): WireError {
  if (!isDenial(LeatError.fromWire(error))) return error;
  const { cause: _levels, ...told } = error;
  const message = explained(error, denier);
  return { ...told, code: "permission_denied", message };
}

/** Replaces Deno's sentence in the message, or appends one if only a cause contains it. */
function explained(error: WireError, denier: Denier): string {
  const noPackage = (_: string, name: string | undefined, again: string) =>
    `it needs the package "${name ?? again}", which no worker fetches for a function: put what ` +
    "is needed of it into the module, with a bundler for instance";
  // Deno's message ends with the place of the import.
  const message = error.message.replaceAll("LeatError: ", "").replace(PACKAGE_SENTENCE, noPackage)
    .replace(/\n\s+at [^]*$/, "");
  const own = DENO_SENTENCE.exec(message);
  if (own !== null) return message.replace(own[0], `it needs ${denied(own, denier)}`);
  const system = SYSTEM_SENTENCE.exec(message);
  if (system !== null) return message.replace(system[0], deniedBySystem(system));
  for (let cause = error.cause; cause !== undefined; cause = cause.cause) {
    const found = DENO_SENTENCE.exec(cause.message);
    if (found !== null) return `${message} In ${denier.program}: it needs ${denied(found, denier)}`;
  }
  return message;
}

function deniedBySystem([, path]: RegExpExecArray): string {
  const where = path === undefined ? "what it asked for" : `"${path}"`;
  return `the system denies it ${where}: a link there leads out of what this worker grants ` +
    "(its operator can grant the target, with --data-root), or the worker's user may not use it";
}

function denied([, kind = "", what = ""]: RegExpExecArray, denier: Denier): string {
  const asked = what === "" ? `${kind} access` : `${kind} access to "${what}"`;
  return `${asked}, which ${denier.program} does not grant (${denier.remedy(kind, what)})`;
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
