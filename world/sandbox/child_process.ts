/**
 * A process that this one starts for a program of Leat's, with a channel to it.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import { LeatError } from "../../core/error.ts";
import { shownText } from "../../core/shown_text.ts";
import { ProcessChannel, type ProcessChannelOptions } from "../../transport/process/channel.ts";
import {
  standardInput,
  standardOutput,
  streamReader,
  streamWriter,
} from "../../transport/process/pipes.ts";
import { readableSlots, writableSlots } from "../../transport/process/slots.ts";
import type { Launch } from "./launcher.ts";

/** What a process is started with. */
export interface ChildOptions extends ProcessChannelOptions {
  /** The URL of its program, which calls `channelToParent`. */
  readonly program: string;
  /** Flags of Deno: its permissions and its engine's. */
  readonly flags: readonly string[];
  /** Limits that the kernel keeps, where the system has them (Linux). */
  readonly limits?: Omit<Launch, "command">;
  /** Whether it has this process's environment. Default: nothing but where Deno's cache is. */
  readonly hasEnvironment?: boolean;
}

/** How a process ended. */
export interface ChildEnd {
  readonly code: number;
  readonly signal: string | null;
  /** The last of what it wrote to standard error. */
  readonly said: string;
}

/** What the log gets of one process's standard error, in characters; beyond it, nothing. */
const LOGGED_CHARS_MAX = 2 ** 20;
/** Before each line of it, so that no function writes a line of its worker's. */
const LOG_PREFIX = "runner: ";
/** What is kept of it to explain an end, in characters. */
const SAID_CHARS = 4_096;
/** What tells Deno where its cache is. */
const CACHE_VARIABLES = ["DENO_DIR", "XDG_CACHE_HOME", "HOME"];

/** See the module. */
export class ChildProcess {
  readonly channel: ProcessChannel;
  /** Settles when the process is no more and its output is read. */
  readonly ended: Promise<ChildEnd>;
  readonly #child: Deno.ChildProcess;
  readonly #folder: string;
  #said = "";

  /** @throws {LeatError} where no process can be started, with what is missing. */
  constructor(options: ChildOptions) {
    this.#folder = Deno.makeTempDirSync({ prefix: "leat-runner-" });
    try {
      const incoming = emptyFile(`${this.#folder}/up`);
      const outgoing = emptyFile(`${this.#folder}/down`);
      this.#child = spawn(options, { incoming: outgoing, outgoing: incoming });
      const streams = {
        incoming: streamReader(this.#child.stdout),
        outgoing: streamWriter(this.#child.stdin),
        incomingSlots: readableSlots(incoming),
        outgoingSlots: writableSlots(outgoing),
      };
      this.channel = new ProcessChannel(streams, options);
    } catch (error) {
      this.forgetFiles();
      throw error;
    }
    const logged = this.#log();
    this.ended = this.#child.status.then(async ({ code, signal }) => {
      await logged;
      return { code, signal, said: this.#said };
    });
    this.ended.then(() => this.forgetFiles());
  }

  /** Removes the names of the shared files: to be called once both processes have them open. */
  forgetFiles(): void {
    try {
      Deno.removeSync(this.#folder, { recursive: true });
    } catch {
      // They have been removed.
    }
  }

  /** Ends the process at once, whatever it is doing. */
  kill(): void {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended.
    }
  }

  /** Has this program go on for as long as the process lives, as it does at first. */
  ref(): void {
    this.#child.ref();
  }

  /** Lets this program end before the process, which ends with it. */
  unref(): void {
    this.#child.unref();
  }

  /** Passes on what the process says, which the functions in it decide. */
  async #log(): Promise<void> {
    const decoder = new TextDecoder();
    const encoder = new TextEncoder();
    let left = LOGGED_CHARS_MAX;
    let line = "";
    for await (const chunk of this.#child.stderr) {
      const text = decoder.decode(chunk, { stream: true });
      this.#said = (this.#said + text).slice(-SAID_CHARS);
      const lines = (line + text.slice(0, Math.max(0, left))).split("\n");
      left -= text.length;
      line = lines.pop()!;
      const logged = lines.map((said) => `${LOG_PREFIX}${shownText(said)}\n`).join("");
      if (logged !== "") await Deno.stderr.write(encoder.encode(logged)).catch(() => {});
    }
    if (line !== "") {
      await Deno.stderr.write(encoder.encode(`${LOG_PREFIX}${shownText(line)}\n`)).catch(() => {});
    }
  }
}

/** The paths of a process's slot files, as the process sees them. */
interface SlotPaths {
  readonly incoming: string;
  readonly outgoing: string;
}

function spawn(options: ChildOptions, { incoming, outgoing }: SlotPaths): Deno.ChildProcess {
  const { program, flags, limits, hasEnvironment = false } = options;
  const deno = denoCommand();
  const args = [
    ...["run", "--quiet", "--no-prompt", "--cached-only", ...configFlags(), ...flags],
    // A flag that names a path would narrow one that names none.
    ...(flags.includes("--allow-read") ? [] : [`--allow-read=${incoming}`]),
    ...[`--allow-write=${outgoing}`, program, incoming, outgoing],
  ];
  const isLaunched = limits !== undefined && Deno.build.os === "linux";
  const command = new Deno.Command(deno, {
    args: isLaunched
      ? launcherArgs({
        ...limits,
        command: [Deno.execPath(), ...args],
        readable: [...limits.readable, ...programPaths(), incoming],
        writable: [...limits.writable, outgoing],
      })
      : args,
    ...(hasEnvironment ? {} : cacheOnly()),
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  });
  try {
    return command.spawn();
  } catch (cause) {
    throw new LeatError(
      LeatError.from(cause).code,
      `A process for a pipeline cannot be started: ${
        LeatError.from(cause).message
      }. This program ` +
        "needs --allow-run=deno, and deno on its PATH",
      { cause },
    );
  }
}

function launcherArgs(launch: Launch): string[] {
  return [
    ...["run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--cached-only"],
    ...["--allow-ffi", `--allow-env=${CACHE_VARIABLES.join(",")}`],
    ...[fileURLToPath(import.meta.resolve("./launcher.ts")), JSON.stringify(launch)],
  ];
}

/** This program's own Deno where it may be run by its path, else the one on the path. */
function denoCommand(): string {
  const command = Deno.execPath();
  const { state } = Deno.permissions.querySync({ name: "run", command });
  return state === "granted" ? command : "deno";
}

/** The top of Leat's own tree. */
const TOP = new URL("../../", import.meta.url);

/** Names of modules are resolved as they are in this program. */
function configFlags(): string[] {
  if (TOP.protocol !== "file:") {
    throw new LeatError(
      "unimplemented",
      `Confined processes need Leat's files on this machine, and this program has them from ${TOP}: ` +
        "clone Leat beside your project and link it",
    );
  }
  return ["--config", fileURLToPath(new URL("deno.json", TOP)), "--frozen"];
}

/** What a runner's program consists of. */
function programPaths(): string[] {
  const parts = ["actors", "core", "data", "transport", "world", "deno.json", "deno.lock"];
  return parts.map((part) => fileURLToPath(new URL(part, TOP)));
}

/** An environment without this process's secrets, as far as this program may read what Deno needs. */
function cacheOnly(): Pick<Deno.CommandOptions, "clearEnv" | "env"> {
  const isGranted = CACHE_VARIABLES.every((variable) =>
    Deno.permissions.querySync({ name: "env", variable }).state === "granted"
  );
  if (!isGranted || Deno.build.os === "windows") return {};
  // Escapes of colours would be escaped once more in the log.
  const env: Record<string, string> = { NO_COLOR: "1" };
  for (const name of CACHE_VARIABLES) {
    const value = Deno.env.get(name);
    if (value !== undefined) env[name] = value;
  }
  return { clearEnv: true, env };
}

function emptyFile(path: string): string {
  Deno.openSync(path, { write: true, createNew: true, mode: 0o600 }).close();
  return path;
}

/**
 * The channel of a program that was started as a {@linkcode ChildProcess}. What the program may still
 * do with the paths of the slot files means nothing once their folder is gone.
 */
export function channelToParent(): ProcessChannel {
  const [incoming, outgoing] = Deno.args as [string, string];
  return new ProcessChannel({
    incoming: standardInput(),
    outgoing: standardOutput(),
    incomingSlots: readableSlots(incoming),
    outgoingSlots: writableSlots(outgoing),
  });
}
