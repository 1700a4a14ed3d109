/** `docs/simulation.md` names every fault, workload and mutant that there is. */
import { FAULTS } from "../../sim/counters.ts";
import { MUTANTS } from "../../sim/mutants/mutants.ts";
import { WORKLOADS } from "../../sim/workloads.ts";
import { assertEquals } from "../assert.ts";

const PAGE = new URL("../../docs/simulation.md", import.meta.url);

Deno.test("docs/simulation.md has a row for each fault, workload and mutant", async () => {
  const page = await Deno.readTextFile(PAGE);
  const rows = new Set([...page.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name));
  const names = [...FAULTS, ...Object.keys(WORKLOADS), ...MUTANTS.keys()];
  assertEquals(names.filter((name) => !rows.has(name)), []);
});
