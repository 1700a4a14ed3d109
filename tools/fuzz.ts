/**
 * Feeds invalid input to Leat's readers, and reports input that they neither read nor refuse:
 *
 *     deno task fuzz --minutes 10
 *
 * An input is a valid input with a few changes. A failure is an error that is no `LeatError` or has the
 * code `internal` or `unknown`, a reader that never ends, a process that dies, or too much memory. A
 * failing input is shrunk and written to a file.
 */
import { EXIT_FAILURE, EXIT_INTERRUPTED, runProgram, UsageError } from "../cli/lib/args.ts";
import type { Program } from "../cli/lib/help.ts";
import { choice, integer, number, text, type Values } from "../cli/lib/options.ts";
import { counted } from "../cli/lib/counted.ts";
import { StopRequests } from "../cli/lib/stop_requests.ts";
import { CampaignProgress } from "../sim/vopr/progress.ts";
import { type CampaignResult, fuzz } from "./fuzz/campaign.ts";
import { runChild } from "./fuzz/child_run.ts";
import type { Failure } from "./fuzz/news.ts";
import { TARGETS } from "./fuzz/targets.ts";

const MODULE = import.meta.resolve("./fuzz/targets.ts");
/** The folder of failing inputs. */
const FOLDER = ".cache/fuzz";
const ALL = "all";
/** Default time for all targets together. */
const MINUTES = 5;
const SEED = 1;
const BYTES_PER_MB = 2 ** 20;

const OPTIONS = {
  minutes: number({
    help: `Time for all targets together; ${MINUTES} unless the inputs are counted.`,
    min: 0.001,
  }),
  inputs: integer({ help: "How many inputs of each target.", min: 1 }),
  seed: integer({
    help: `The seed of the inputs. The same seed gives the same inputs. Default: ${SEED}.`,
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
  }),
  target: choice([ALL, ...Object.keys(TARGETS)], {
    help: "What is fuzzed.",
    placeholder: "NAME",
    default: ALL,
  }),
  input: text({ help: "Runs this one file instead, for a named target.", placeholder: "FILE" }),
  timeoutS: number({ help: "An input that takes longer fails.", default: 20, min: 0.1 }),
  memoryMb: integer({
    help: `A process that takes more fails. ${higherLimits()}`,
    default: 1_024,
    min: 128,
  }),
};

/** The program's options and help. */
export const PROGRAM: Program<typeof OPTIONS> = {
  usage: "deno task fuzz",
  summary:
    "Gives Leat's readers damaged and hostile input, and fails if one does not withstand it.",
  options: OPTIONS,
  check: ({ input, target, inputs, minutes, seed }) => {
    if (input === undefined) return;
    if (target === ALL) throw new UsageError("--input needs --target: one file is of one target");
    if (inputs !== undefined || minutes !== undefined || seed !== undefined) {
      throw new UsageError("--input runs one file once: leave out --inputs, --minutes and --seed");
    }
  },
  notes: [
    "Targets:",
    ...Object.entries(TARGETS).map(([name, { help }]) => `  ${name.padEnd(14)}${help}`),
    "",
    `A failing input is shrunk and written to ${FOLDER}. The exit status is 1 if there was one.`,
  ].join("\n"),
};

type Settings = Values<typeof OPTIONS>;

async function main(settings: Settings): Promise<void> {
  if (settings.input !== undefined) return await runFile(settings, settings.input);
  const names = settings.target === ALL ? Object.keys(TARGETS) : [settings.target];
  const minutes = settings.minutes ?? (settings.inputs === undefined ? MINUTES : undefined);
  using requests = new StopRequests();
  const stopping = new AbortController();
  let isInterrupted = false;
  requests.first.then(() => {
    isInterrupted = true;
    stopping.abort();
  });
  console.log(`Seed ${settings.seed ?? SEED}`);
  let failed = 0;
  for (const [i, name] of names.entries()) {
    if (isInterrupted) break;
    const result = await campaign(name, settings, {
      ...(minutes === undefined ? {} : { ms: minutes * 60_000 / names.length }),
      signal: stopping.signal,
    });
    failed += result.failures.length;
    console.log(`${i + 1}/${names.length} ${name.padEnd(14)} ${resultText(result)}`);
    for (const failure of result.failures) await report(name, failure);
  }
  Deno.exitCode = statusOf({ failed, isInterrupted });
}

/** Returns the exit status of a campaign. A failure counts also if Ctrl-C ended the campaign. */
export function statusOf(
  { failed, isInterrupted }: { readonly failed: number; readonly isInterrupted: boolean },
): number {
  if (failed > 0) return EXIT_FAILURE;
  return isInterrupted ? EXIT_INTERRUPTED : 0;
}

async function campaign(
  target: string,
  { seed = SEED, inputs, memoryMb, timeoutS }: Settings,
  limits: { readonly ms?: number; readonly signal: AbortSignal },
): Promise<CampaignResult> {
  using progress = new CampaignProgress(
    { runs: inputs ?? Infinity, timeMs: limits.ms ?? Infinity },
    { noun: "input", failed: "failures" },
  );
  return await fuzz({
    ...limits,
    ...(inputs === undefined ? {} : { inputs }),
    module: MODULE,
    target,
    seed: BigInt(seed),
    memoryBytesMax: memoryOf(target, memoryMb),
    stepMs: timeoutS * 1_000,
    onProgress: (done, failed) => progress.update({ done, failed }),
  });
}

function memoryOf(target: string, memoryMb: number): number {
  return Math.max(memoryMb * BYTES_PER_MB, TARGETS[target]!.memoryBytesMax ?? 0);
}

/** Says which targets may take more memory than `--memory-mb`. */
function higherLimits(): string {
  const higher = Object.entries(TARGETS).flatMap(([name, { memoryBytesMax }]) =>
    memoryBytesMax === undefined ? [] : [`${name} ${memoryBytesMax / BYTES_PER_MB}`]
  );
  return `Always allowed: ${higher.join(", ")}.`;
}

function resultText({ runs, valid, failures }: CampaignResult): string {
  const share = `${counted(runs, "input")}, ${valid} of them valid`;
  return failures.length === 0 ? share : `${share}, ${counted(failures.length, "failure")}`;
}

async function report(target: string, failure: Failure): Promise<void> {
  const bytes = Uint8Array.fromBase64(failure.input);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex().slice(0, 12);
  const path = `${FOLDER}/${target}-${digest}`;
  await Deno.mkdir(FOLDER, { recursive: true });
  await Deno.writeFile(path, bytes);
  const lines = failure.message.trimEnd().split("\n").slice(0, 12);
  console.log(`\n${failure.reason} at input ${failure.index} (${counted(bytes.length, "byte")}):`);
  for (const line of lines) console.log(`    ${line}`);
  console.log(`Repeat it: deno task fuzz --target ${target} --input ${path}\n`);
}

/** Runs the input of a file in a child, and prints the result. */
async function runFile(settings: Settings, path: string): Promise<void> {
  const { target, memoryMb, timeoutS } = settings;
  const bytes = await UsageError.where(() => read(path));
  const end = await runChild({
    module: MODULE,
    target,
    seed: "0",
    first: 0,
    end: 1,
    isCareful: true,
    memoryBytesMax: memoryOf(target, memoryMb),
    input: bytes.toBase64(),
  }, { stepMs: timeoutS * 1_000 });
  for (const { reason, message } of end.failures) console.log(`${reason}: ${message}`);
  if (end.died !== undefined) console.log(`${end.died.reason}: ${end.died.said}`);
  if (end.failures.length > 0 || end.died !== undefined) Deno.exitCode = EXIT_FAILURE;
  else console.log(end.done?.valid === 1 ? "It is valid." : "It is refused.");
}

async function read(path: string): Promise<Uint8Array> {
  try {
    return await Deno.readFile(path);
  } catch (cause) {
    throw new UsageError(`--input '${path}' cannot be read: ${String(cause)}`, { cause });
  }
}

if (import.meta.main) await runProgram(PROGRAM, main);
