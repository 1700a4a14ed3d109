/** The last line of an interrupted drill, and whether its logs stay. */
import { TestBed } from "../../cli/chaos/test_bed.ts";
import { Violations } from "../../sim/checkers/checker.ts";
import { assertEquals } from "../assert.ts";

/** The last line of a drill with these broken promises, its folder of logs, and what is in it. */
async function interrupted(...broken: readonly string[]) {
  const testBed = new TestBed();
  const { folder } = testBed.logs;
  testBed.logs.write("worker-1", "the proof");
  const violations = new Violations();
  const findings = violations.by("exactly once");
  for (const what of broken) findings.add(what);
  const ending = testBed.interrupted("3 s: all is well", violations);
  findings.add("a reader has failed, because its cluster was ended");
  const line = await ending;
  const entries = await Array.fromAsync(Deno.readDir(folder), ({ name }) => name).catch(() => []);
  if (entries.length > 0) await Deno.remove(folder, { recursive: true });
  return { line, folder, entries };
}

Deno.test("TestBed.interrupted keeps the logs, and says where, if a promise was broken before", async () => {
  const { line, folder, entries } = await interrupted("7 came twice", "8 is missing");
  assertEquals(
    line,
    "Interrupted after 3 s: all is well; promises were broken 2 times (exactly once: 7 came twice; " +
      `exactly once: 8 is missing); logs of the processes: ${folder}`,
  );
  assertEquals(entries, ["worker-1.log"]);
});

Deno.test("TestBed.interrupted removes the logs if no promise was broken before", async () => {
  const { line, entries } = await interrupted();
  assertEquals(line, "Interrupted after 3 s: all is well; no promise was broken so far");
  assertEquals(entries, []);
});
