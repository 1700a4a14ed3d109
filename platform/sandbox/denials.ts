/** Explains a denied permission to the author of a function, and to the operator who can grant it. */
import { dirname, isAbsolute } from "node:path";
import { LeatError, type WireError } from "../../core/error.ts";
import { shellWord } from "../../core/shown_text.ts";

/** Deno's sentence for a denied permission, which names a flag of Deno. */
const DENO_SENTENCE =
  /Requires (\w+) access(?: to "([^"]*)")?(?:, run again with the --allow-[\w-]+ flag)?/;

/** The system's sentence when the kernel denies what Deno allows. */
const SYSTEM_SENTENCE = /Permission denied \(os error 13\)(?:: \w+ '([^']*)')?/;

/** Deno's sentence when a module imports a package, which a confined process cannot fetch. */
const PACKAGE_SENTENCE = new RegExp(
  [
    /Failed loading \S+ for package "([^"]*)"[^]*--cached-only is specified\.?/,
    /Could not find constraint '([^']*)' in the list of packages\.?/,
  ].map(({ source }) => source).join("|"),
);

/** The same of a package that is in Deno's cache, and not in Leat's lock file. It may name another one. */
const UNLOCKED_SENTENCE = /The lockfile is out of date\.[^]*/;

/**
 * The message of a file that may not be written (`new_files.ts`). Its cause may name the reading of a
 * lock, but a worker that lets a folder be written lets it be read, too.
 */
const UNWRITABLE = /\bCannot write (.+?): this program may not\. Run it with --allow-read .*$/;

const SENTENCES = [DENO_SENTENCE, SYSTEM_SENTENCE, PACKAGE_SENTENCE, UNLOCKED_SENTENCE];

/** Whether an error is a denied permission, possibly wrapped in another error's message. */
export function isDenial(error: unknown): boolean {
  const { code, message } = LeatError.from(error);
  return code === "permission_denied" || SENTENCES.some((sentence) => sentence.test(message));
}

/** The program that denied a permission, and the remedy. */
interface Denier {
  /** `"this worker"` */
  readonly program: string;
  /** How to get the permission, to be put in parentheses. `folder`: what to grant for a path or URL. */
  remedy(kind: string, what: string, folder: string): string;
}

/** A trainer gives no permissions to functions of a pipeline that it did not build. */
export const IN_A_TRAINER: Denier = {
  program: "a training process that did not build this pipeline",
  remedy: () =>
    "read the pipeline on workers, whose operators can grant permissions, or trust its author with " +
    "trustPipeline: true",
};

const ON_A_WORKER: Denier = { program: "this worker", remedy };

/**
 * Returns the error of a denied permission without its causes, and with the worker's flag instead of
 * Deno's. Other errors stay the same. The causes would repeat Deno's flags at each level, and name the
 * worker's program instead of the function.
 */
export function explainDenial(error: WireError, denier: Denier = ON_A_WORKER): WireError {
  if (!isDenial(LeatError.fromWire(error))) return error;
  const { cause: _cause, ...outermost } = error;
  const message = explained(error, denier);
  return { ...outermost, code: "permission_denied", message };
}

/** Replaces Deno's sentence in the message, or appends one if only a cause contains it. */
function explained(error: WireError, denier: Denier): string {
  const noPackage = (_: string, failed: string | undefined, unlisted: string) =>
    needsPackage(`the package "${failed ?? unlisted}"`);
  // Deno's message ends with the position of the import.
  const message = error.message.replaceAll("LeatError: ", "").replace(PACKAGE_SENTENCE, noPackage)
    .replace(UNLOCKED_SENTENCE, needsPackage("a package of npm or JSR"))
    .replace(/\n +at [^]*$/, "");
  const unwritable = UNWRITABLE.exec(message);
  if (unwritable !== null) {
    const [sentence, path = ""] = unwritable;
    const needs = denied(["", "write", path], denier, undefined);
    return message.replace(sentence, () => `Cannot write ${path}: it needs ${needs}`);
  }
  const listed = /\bCannot list (.+?): /.exec(message)?.[1];
  const own = DENO_SENTENCE.exec(message);
  if (own !== null) return message.replace(own[0], `it needs ${denied(own, denier, listed)}`);
  const system = SYSTEM_SENTENCE.exec(message);
  if (system !== null) return message.replace(system[0], deniedBySystem(system));
  for (let cause = error.cause; cause !== undefined; cause = cause.cause) {
    const found = DENO_SENTENCE.exec(cause.message);
    if (found === null) continue;
    return `${message} In ${denier.program}: it needs ${denied(found, denier, listed)}`;
  }
  return message;
}

function needsPackage(what: string): string {
  return `it needs ${what}, which a worker does not fetch for a function: ` +
    "bundle it into the function's module";
}

function deniedBySystem([, path]: RegExpExecArray): string {
  const what = path === undefined ? "access" : `access to "${path}"`;
  return `the system denies it ${what}: either a link there leads out of the folders that this worker ` +
    "grants (its operator can grant the target, with --data-root), or the worker's user has no access";
}

/** `listed`: the pattern whose files could not be listed. Another path that was read for it is a folder. */
function denied(
  [, kind = "", what = ""]: readonly string[],
  { program, remedy }: Denier,
  listed: string | undefined,
): string {
  const permission = what === "" ? `${kind} access` : `${kind} access to "${what}"`;
  const how = remedy(kind, what, listed === undefined || listed === what ? folderOf(what) : what);
  return `${permission}, which ${program} does not grant (${how})`;
}

function isRelative(what: string): boolean {
  return what !== "" && !isAbsolute(what) && !/^[a-z][a-z0-9+.-]+:/i.test(what);
}

/** The folder to grant for a path or a URL: of a file at the root of a host or a bucket, that root. */
function folderOf(what: string): string {
  const root = /^([a-z][a-z0-9+.-]+:\/\/[^/]+)(?:\/[^/]*)?$/i.exec(what)?.[1];
  if (root !== undefined) return root;
  const folder = dirname(what);
  return isRoot(folder) ? what : folder;
}

function isRoot(folder: string): boolean {
  return isAbsolute(folder) && dirname(folder) === folder;
}

/** Never advises the root of this machine, which would grant everything. */
function granting(option: string, folder: string): string {
  return isRoot(folder)
    ? `its operator can grant folders below it, with ${option}`
    : `its operator can, with ${option}=${shellWord(folder)}`;
}

function remedy(kind: string, what: string, folder: string): string {
  if ((kind === "read" || kind === "write") && isRelative(what)) {
    return "a relative path starts at the folder that the worker was started in: give an absolute path";
  }
  switch (kind) {
    case "read":
      return granting("--data-root", folder);
    case "write":
      return granting("--allow-write", folder);
    case "net":
      return `its operator can, with --allow-net=${shellWord(what)}`;
    case "import":
      return `its operator can, with --allow-udf-import=${shellWord(what)}`;
    default:
      return "no worker with a sandbox can; --no-sandbox turns the sandbox off";
  }
}
