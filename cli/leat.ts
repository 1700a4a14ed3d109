/**
 * Leat on the command line: one program for all programs of a cluster.
 *
 * @example
 * ```sh
 * deno task leat dispatcher --port 5050
 * deno task leat worker --dispatcher ws://127.0.0.1:5050
 * ```
 *
 * @module
 */
import { EXIT_USAGE, wantsHelp } from "./lib/args.ts";
import { nearestOf } from "../core/shown_text.ts";

/** What `leat plan --json` prints. */
export type { Plan } from "./plan/report.ts";

/** The commands, and the line of each in `leat --help`. */
const COMMANDS: Readonly<Record<string, string>> = {
  dispatcher: "The dispatcher of a cluster",
  worker: "A worker of a cluster",
  status: "The state of a dispatcher's cluster",
  autoscale: "Keeps as many workers on this host as a dispatcher wants",
  plan: "How many workers a pipeline needs, and what they cost",
  cluster: "Starts several processes on this host and runs a job on them",
};

async function run([command, ...args]: readonly string[]): Promise<void> {
  if (command === undefined || wantsHelp([command])) return console.log(HELP);
  if (!Object.hasOwn(COMMANDS, command)) {
    const nearest = nearestOf(command, Object.keys(COMMANDS));
    const hint = nearest === undefined ? "" : `; did you mean ${nearest}?`;
    console.error(`error: there is no command '${command}'${hint}\n\n${HELP}`);
    Deno.exit(EXIT_USAGE);
  }
  // With literals, Deno would load all programs to run one.
  const program: { run(args: readonly string[]): Promise<void> } = await import(
    import.meta.resolve(`./${command}.ts`)
  );
  await program.run(args);
}

const HELP = `Usage: leat COMMAND [options]

Commands:
${Object.entries(COMMANDS).map(([name, text]) => `  ${name.padEnd(12)}${text}`).join("\n")}

'leat COMMAND --help' lists the options of a command.`;

if (import.meta.main) await run(Deno.args);
