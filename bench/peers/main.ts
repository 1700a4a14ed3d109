/**
 * `deno task bench:peers` runs Leat, tf.data, tf.data service, DataLoader, Grain and SPDL on the same
 * files, in alternating windows of one run. It prints a table, and writes JSON and a page of plots.
 */
import { EXIT_FAILURE, runProgram, UsageError } from "../../cli/lib/args.ts";
import { flag, integer, milliseconds, names, text, type Values } from "../../cli/lib/options.ts";
import { requireWritable, writePage } from "../../cli/lib/page.ts";
import { StopRequests } from "../../cli/lib/stop_requests.ts";
import { renderTable } from "../../cli/lib/table.ts";
import { disagreements, writeFirstRecord } from "./agreement.ts";
import { CASES, PARTS, type PeerCase } from "./cases.ts";
import { type Environment, type Needed, openEnvironment } from "./environment.ts";
import { renderMarkdown } from "./markdown.ts";
import { openFiles, type PeerFiles } from "./files.ts";
import { type CaseResult, LEAT, measureCase } from "./measure.ts";
import { type PeerReport, renderReport, resultTable } from "./report.ts";
import type { SideCommand } from "./side.ts";

const FOLDER = ".cache/peers";

/** The program's options and help. */
export const PROGRAM = {
  usage: "deno task bench:peers",
  summary:
    "Runs Leat and other libraries on the same files in alternating windows and prints the " +
    "ratios. The libraries are installed into a Python environment below .cache/peers; those that " +
    "cannot be installed are left out.",
  options: {
    only: names({
      help: "Only these cases or parts; --list names them.",
      placeholder: "NAME,NAME,…",
    }),
    list: flag("Names the cases and runs none."),
    rounds: integer({ help: "Windows of each side.", default: 5, min: 1 }),
    windowMs: milliseconds({ help: "Length of a window.", default: 2_000, min: 10 }),
    json: text({ help: "The file for all results.", default: `${FOLDER}/results.json` }),
    page: text({ help: "The page of plots.", default: `${FOLDER}/index.html` }),
    markdown: text({
      help:
        "Also writes the results to this file as Markdown; bench/results.md is the page of the project.",
      placeholder: "FILE",
    }),
  },
};

if (import.meta.main) await runProgram(PROGRAM, main);

async function main(values: Values<typeof PROGRAM.options>): Promise<void> {
  const cases = chosenCases(values.only);
  if (values.list) {
    for (const { name, part, peers } of cases) {
      console.log(`${name} (${part}): ${peers.join(", ")}`);
    }
    return;
  }
  const startedAt = new Date().toISOString();
  await Deno.mkdir(FOLDER, { recursive: true });
  requireWritable(values.json, "--json");
  requireWritable(values.page, "--page");
  if (values.markdown !== undefined) requireWritable(values.markdown, "--markdown");
  const files = await openFiles(`${FOLDER}/files`, (what, done, total) => {
    if (done % 64 === 0 || done === total) console.error(`generating ${what}: ${done} of ${total}`);
  });
  const wanted = new Set(
    cases.flatMap(({ peers, isInPython }): Needed[] => isInPython ? [...peers, LEAT] : [...peers]),
  );
  const environment = await openEnvironment(`${FOLDER}/venv`, wanted, console.error);
  for (const [peer, why] of environment.missing) console.error(`${peer} is left out: ${why}`);
  const oneImage = { ...files, images: [`${FOLDER}/files/one-image.tfrecord`] };
  await writeFirstRecord(files.images, oneImage.images[0]!);
  const results: CaseResult[] = [];
  const { markdown } = values;
  const finish = () => {
    const report: PeerReport = {
      ...{ startedAt, results, machine: machineFacts(), versions: environment.versions },
      commandLine: `${PROGRAM.usage} ${Deno.args.join(" ")}`.trim(),
      missing: Object.fromEntries(environment.missing),
    };
    Deno.writeTextFileSync(values.json, JSON.stringify(report, null, 2));
    writePage(renderReport(report), values.page);
    if (markdown !== undefined) {
      writePage(renderMarkdown(report), markdown);
      new Deno.Command("deno", { args: ["fmt", "--quiet", markdown] }).outputSync();
    }
    console.log(renderTable(resultTable(results, "Leat and its peers")));
    console.log(`${values.page}, ${values.json}`);
  };
  using requests = new StopRequests();
  const startedAtMs = performance.now();
  const timeLeftText = (done: number) => {
    if (done === 0) return "";
    const leftMs = (performance.now() - startedAtMs) / done * (cases.length - done);
    return ` (about ${Math.ceil(leftMs / 60_000)} min left)`;
  };
  const runAll = async () => {
    for (const [index, one] of cases.entries()) {
      console.error(`${index + 1} of ${cases.length}: ${one.name} …${timeLeftText(index)}`);
      const differ = await disagreements(one, commandsOf(one, oneImage, environment));
      const agreeing = commandsOf(one, files, environment).entries()
        .filter(([side]) => !(side in differ));
      const measured = await measureCase(one, new Map(agreeing), values);
      const result = { ...measured, failed: { ...differ, ...measured.failed } };
      for (const [side, why] of Object.entries(result.failed)) console.error(`  ${side}: ${why}`);
      results.push(result);
    }
  };
  await requests.interrupting(runAll(), () => {
    if (results.length > 0) finish();
    return `Interrupted after ${results.length} of ${cases.length} cases`;
  });
  finish();
  if (results.some(({ failed }) => LEAT in failed)) Deno.exitCode = EXIT_FAILURE;
}

function chosenCases(only: readonly string[] | undefined): readonly PeerCase[] {
  const unknown = only?.find((name) => !(name in PARTS) && !CASES.some((one) => one.name === name));
  if (unknown !== undefined) {
    throw new UsageError(
      `--only names '${unknown}', which is neither a case nor a part; see --list`,
    );
  }
  return CASES.filter(({ name, part }) =>
    only === undefined || only.includes(name) || only.includes(part)
  );
}

/** Returns the commands of a case's sides, Leat's first. */
function commandsOf(
  { pipeline, cores, peers, isInPython = false }: PeerCase,
  files: PeerFiles,
  { python, available }: Environment,
): ReadonlyMap<string, SideCommand> {
  const pinned = cores === "one";
  const sideArgs = [pipeline, JSON.stringify(files)];
  const program = import.meta.resolve("./leat/main.ts");
  const peer = (name: Needed): [string, SideCommand] => {
    const script = `${import.meta.dirname}/python/${name}_side.py`;
    return [name, { command: python, args: [script, ...sideArgs], pinned }];
  };
  const leat: [string, SideCommand] = [LEAT, {
    command: "deno",
    args: ["run", "--no-prompt", "-P=bench", program, ...sideArgs],
    pinned,
  }];
  return new Map([
    isInPython ? peer(LEAT) : leat,
    ...peers.filter((name) => available.has(name)).map(peer),
  ]);
}

function machineFacts(): Record<string, string> {
  return {
    Cores: String(navigator.hardwareConcurrency),
    System: `${Deno.build.os} ${Deno.build.arch}`,
    Deno: Deno.version.deno,
  };
}
