/**
 * `deno task bench` runs every bench of the folders below, and prints Leat's ratio to the bare
 * primitive.
 */

import { EXIT_FAILURE, runProgram, UsageError } from "../cli/lib/args.ts";
import { flag, integer, milliseconds, text, type Values } from "../cli/lib/options.ts";
import { requireWritable } from "../cli/lib/page.ts";
import { LeatError } from "../core/error.ts";
import type { Bench } from "./lib/bench.ts";
import { runBenches } from "./lib/run.ts";

const FOLDERS = ["engine/", "carriers/", "service/"];

/** The program's options and help. */
export const PROGRAM = {
  usage: "deno task bench",
  summary:
    "Runs Leat and the bare primitives alternately and prints the ratios. Ends with status 1 " +
    "if a ratio is below its floor.",
  options: {
    filter: text({ help: "Runs only benches whose name contains this.", default: "" }),
    list: flag("Names the benches and runs none."),
    rounds: integer({ help: "Windows for each side.", default: 7, min: 1 }),
    windowMs: milliseconds({ help: "Length of a window.", default: 300, min: 1 }),
    json: text({
      help: "Also writes the results to this file, with every round.",
      placeholder: "FILE",
    }),
  },
};

if (import.meta.main) await runProgram(PROGRAM, main);

async function main(values: Values<typeof PROGRAM.options>): Promise<void> {
  const benches = (await discover()).filter(({ name }) => name.includes(values.filter));
  if (benches.length === 0) {
    throw new UsageError(
      `--filter is '${values.filter}', and no bench has such a name; see --list`,
    );
  }
  if (values.list) {
    for (const bench of benches) console.log(`${bench.name} (at least ${bench.floor})`);
    return;
  }
  if (values.json !== undefined) requireWritable(values.json, "--json");
  const results = await runBenches(benches, values);
  if (!results.every((result) => result.passed)) Deno.exitCode = EXIT_FAILURE;
}

/** Returns the benches of every `*_bench.ts` in {@linkcode FOLDERS}, in the order of file names. */
async function discover(): Promise<Bench[]> {
  const files: string[] = [];
  for (const folder of FOLDERS) {
    const found = [...Deno.readDirSync(new URL(folder, import.meta.url))].map(({ name }) => name);
    files.push(...found.sort().map((name) => folder + name));
  }
  const benches: Bench[] = [];
  for (const name of files.filter((name) => name.endsWith("_bench.ts"))) {
    const module: { benches?: Bench[] } = await import(new URL(name, import.meta.url).href);
    if (module.benches === undefined) throw new LeatError("internal", `${name} exports no benches`);
    benches.push(...module.benches);
  }
  return benches;
}
