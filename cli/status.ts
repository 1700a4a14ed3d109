/** A dispatcher's state in a terminal: `deno task status --help`. */
import { CREDENTIAL_OPTIONS, readCredentials } from "./cluster/server_options.ts";
import { askForState, stateUrl } from "./cluster/state_request.ts";
import { LeatError, type LeatErrorCode } from "../core/error.ts";
import { shownJson } from "../core/shown_text.ts";
import { statusText } from "./cluster/status_text.ts";
import type { DispatcherDescription } from "../mod.ts";
import { runProgram, UsageError } from "./lib/args.ts";
import type { Program } from "./lib/help.ts";
import { flag, milliseconds, text, type Values } from "./lib/options.ts";

/** Clears the screen and its scrollback, and moves to the top. */
const CLEAR_SCREEN = "\x1b[2J\x1b[3J\x1b[H";

/** Default time between updates. */
const INTERVAL_MS = 1_000;

const OPTIONS = {
  dispatcher: text({
    help: "The dispatcher: ws://host:port, or wss://host:port with TLS.",
    default: "ws://127.0.0.1:5050",
    placeholder: "ADDRESS",
  }),
  ...CREDENTIAL_OPTIONS,
  watch: flag(
    "Shows the state repeatedly, until Ctrl-C; waits while the dispatcher does not answer.",
  ),
  intervalMs: milliseconds({
    help: `Time between updates with --watch, by default ${INTERVAL_MS}.`,
    min: 100,
  }),
  json: flag("Prints the whole state as JSON; with --watch, a line each time."),
};

export const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task status",
  summary:
    "Prints a dispatcher's state: waits and their causes, jobs with their clients, and workers " +
    "with their tasks. The dispatcher's port shows the same as a page.",
  options: OPTIONS,
  check({ watch, intervalMs }) {
    if (intervalMs === undefined || watch) return;
    throw new UsageError(
      `--interval-ms is ${intervalMs}, but the state is shown once: add --watch`,
    );
  },
  notes: `Examples:
  deno task status
  deno task status --dispatcher ws://10.0.0.5:5050 --token-file token --watch
  deno task status --json`,
};

export const run = (args: readonly string[] = Deno.args): Promise<void> =>
  runProgram(PROGRAM, main, args);

if (import.meta.main) await run();

async function main(values: Values<typeof OPTIONS>): Promise<void> {
  const { dispatcher, watch, intervalMs = INTERVAL_MS, json } = values;
  await UsageError.where(() => stateUrl(dispatcher));
  const credentials = await readCredentials(values);
  const clear = watch && !json && Deno.stdout.isTerminal() ? CLEAR_SCREEN : "";
  const ask = () => askForState(dispatcher, credentials);
  const show = (state: DispatcherDescription) =>
    print(json ? shownJson(state, watch ? undefined : 2) : clear + statusText(state));
  if (watch) await repeat(ask, show, intervalMs);
  else await show(await ask());
}

/**
 * Shows the state repeatedly, until nobody reads it. Says once for each outage that the dispatcher
 * does not answer.
 * @throws the error of a request if waiting does not help against it.
 */
async function repeat(
  ask: () => Promise<DispatcherDescription>,
  show: (state: DispatcherDescription) => Promise<boolean>,
  intervalMs: number,
): Promise<void> {
  let hasAnswered = false;
  for (let isAway = false;;) {
    const state = await ask().catch((error): undefined => {
      const { code, message } = LeatError.from(error);
      if (!mayPass(code, hasAnswered)) throw error;
      if (!isAway) console.error(`${message}. Waiting until it answers`);
    });
    isAway = state === undefined;
    hasAnswered ||= !isAway;
    if (state !== undefined && !await show(state)) return;
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
  }
}

/**
 * Whether a failure may pass by itself. While a known dispatcher restarts, a proxy in front of it may
 * answer with a page of its own, which is no dispatcher.
 */
function mayPass(code: LeatErrorCode, hasAnswered: boolean): boolean {
  return code === "unavailable" || code === "resource_exhausted" ||
    code === "failed_precondition" && hasAnswered;
}

/** Prints a text to standard output. Returns whether somebody still reads that: not so after `| head`. */
async function print(text: string): Promise<boolean> {
  try {
    const bytes = new TextEncoder().encode(`${text}\n`);
    await ReadableStream.from([bytes]).pipeTo(Deno.stdout.writable, { preventClose: true });
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.BrokenPipe) return false;
    throw error;
  }
}
