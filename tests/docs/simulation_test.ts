/** `docs/simulation.md` names every fault, workload and mutant, and the values of `--faults`. */
import { FAULTS } from "../../sim/engine/counters.ts";
import { MUTANTS } from "../../sim/mutants/mutants.ts";
import { allowedText, FAULT_NAMES } from "../../sim/vopr/fault_values.ts";
import { WORKLOADS } from "../../sim/workloads/workloads.ts";
import { assertEquals } from "../assert.ts";

const PAGE = new URL("../../docs/simulation.md", import.meta.url);

Deno.test("docs/simulation.md gives the allowed values of each fault of --faults", async () => {
  const page = await Deno.readTextFile(PAGE);
  const allowed = new Map(
    [...page.matchAll(/^\| `(\w+)` +\|[^|]+\| (.+?) +\|$/gm)].map(([, name, text]) => [name, text]),
  );
  assertEquals(
    FAULT_NAMES.map((name) => [name, allowed.get(name)]),
    FAULT_NAMES.map((name) => [name, allowedText(name)]),
  );
});

Deno.test("docs/simulation.md has a row for each fault, workload and mutant", async () => {
  const page = await Deno.readTextFile(PAGE);
  const rows = new Set([...page.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name));
  const names = [...FAULTS, ...Object.keys(WORKLOADS), ...MUTANTS.keys()];
  assertEquals(names.filter((name) => !rows.has(name)), []);
});
