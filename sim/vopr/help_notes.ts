/**
 * Writes the notes of `deno task vopr --help` below the options: the names of workloads, faults and
 * mutants.
 */
import { HELP_COLUMNS } from "../../cli/lib/help.ts";
import { wrap } from "../../cli/lib/text.ts";
import { MUTANTS } from "../mutants/mutants.ts";
import { WORKLOAD_LINES } from "../workloads/workloads.ts";
import { FAULT_NAMES, PARTITIONS } from "./fault_values.ts";

/** @param options `end`: the last paragraph. */
export function helpNotes({ end }: { readonly end: string }): string {
  const width = Math.max(...Object.keys(WORKLOAD_LINES).map((name) => name.length));
  const workloads = Object.entries(WORKLOAD_LINES).flatMap(([name, line]) =>
    indented(`  ${name.padEnd(width)}  `, line)
  );
  return [
    `Workloads:\n${workloads.join("\n")}`,
    listed("Faults", FAULT_NAMES),
    wrap(
      `A partition is one of ${
        PARTITIONS.join(", ")
      }. docs/simulation.md describes what each fault ` +
        "does and its allowed values.",
      HELP_COLUMNS,
    ).join("\n"),
    listed("Mutants", [...MUTANTS.keys()]),
    wrap(end, HELP_COLUMNS).join("\n"),
  ].join("\n\n");
}

function listed(title: string, names: Iterable<string>): string {
  return `${title}:\n${indented("  ", [...names].join(", ")).join("\n")}`;
}

/** Wraps text after a head, with a hanging indent. */
function indented(head: string, text: string): string[] {
  const lines = wrap(text, HELP_COLUMNS - head.length);
  return lines.map((line, index) => (index === 0 ? head : " ".repeat(head.length)) + line);
}
