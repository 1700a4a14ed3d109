/**
 * Ctrl-C in programs: once to stop in order, twice to stop at once, and what `deno task` makes of
 * one.
 */

import { ECHO_MS } from "../../cli/lib/stop_requests.ts";
import { assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { type Child, startChild } from "../lib/child.ts";
import { interruptedAt } from "./interruption.ts";

const FLAGS = ["-P", "--no-check"];
const URL_OF_REQUESTS = import.meta.resolve("../../cli/lib/stop_requests.ts");

/** A program that stops in order endlessly, or is in the middle of its work. */
async function start(body: string): Promise<Child & { readonly folder: string }> {
  const folder = await Deno.makeTempDir({ dir: "/tmp", prefix: "leat-stop-" });
  const program = `
    import { StopRequests } from ${JSON.stringify(URL_OF_REQUESTS)};
    const requests = new StopRequests();
    const forever = new Promise(() => setInterval(() => {}, 1000));
    console.log("begun");
    ${body}`;
  await Deno.writeTextFile(`${folder}/program.ts`, program);
  const child = startChild(`${folder}/program.ts`, { flags: FLAGS });
  await child.line(/begun/);
  return Object.assign(child, { folder });
}

Deno.test("StopRequests treats one Ctrl-C that arrives twice, as in a task, as one, and a later one as a second", async () => {
  await using child = await start(`
    let nowMs = 0;
    performance.now = () => nowMs;
    // Called after those of StopRequests.
    Deno.addSignalListener("SIGINT", () => console.log("heard once"));
    Deno.addSignalListener("SIGTERM", () => {
      nowMs += ${ECHO_MS};
      console.log("heard twice");
    });
    await forever;`);
  // The system may merge two equal signals.
  child.kill("SIGINT");
  await child.line(/heard once/);
  child.kill("SIGTERM");
  await child.line(/heard twice/);
  child.kill("SIGINT");
  assertEquals((await child.status).code, 130);
  await Deno.remove(child.folder, { recursive: true });
});

Deno.test("StopRequests cleans up and reports what is lost, also if the work fails because of the stop", async () => {
  await using child = await start(`
    const work = requests.first.then(() => { throw new Error("a part has ended"); });
    await requests.interrupting(work, async () => {
      await new Promise((resolve) => setTimeout(resolve, 1));
      console.log("clean");
      return "Interrupted: all is lost";
    });`);
  child.kill("SIGINT");
  assertEquals((await child.status).code, 130);
  assertStringIncludes(child.stdout.text, "clean");
  assertEquals(child.stderr.text.trim().split("\n").at(-1), "Interrupted: all is lost");
  await Deno.remove(child.folder, { recursive: true });
});

Deno.test("plan and scale report at Ctrl-C what was done and what is lost, and end with status 130", async () => {
  await using plan = startChild("cli/plan.ts", {
    args: ["cli/plan/demo_pipeline.ts", "--step-ms", "20", "--seconds", "600"],
    flags: ["-P=plan", "--no-check"],
  });
  await plan.stderr.match(/^Running /);
  plan.kill("SIGINT");
  assertEquals((await plan.status).code, 130);
  assertMatch(plan.stderr.text, /^Interrupted: nothing was measured yet; there is no plan/m);

  const folder = await Deno.makeTempDir({ dir: "/tmp", prefix: "leat-stop-" });
  await using scale = startChild("cli/scale.ts", {
    args: ["--workers", "4,2000", "--sweep", "none", "--out", `${folder}/scale.html`],
    // At the line of the end: a slow machine has others before.
    flags: [...FLAGS, ...interruptedAt({ line: "cluster sizes: 4 workers.* of CPU" })],
  });
  assertEquals((await scale.status).code, 130);
  assertMatch(scale.stderr.text, /^Interrupted after 1 of 2 sizes: .*scale.html shows only these/m);
  assertEquals([...Deno.readDirSync(folder)].map(({ name }) => name), ["scale.html"]);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("chaos that is interrupted while its processes start says so, and leaves no process and no file", async () => {
  // Tests that run concurrently have files in the usual folder.
  const folder = await Deno.makeTempDir({ dir: "/tmp", prefix: "leat-stop-" });
  const left = () => [...Deno.readDirSync(folder)].map(({ name }) => name);
  await using chaos = startChild("cli/chaos.ts", {
    args: ["--workers", "1", "--modes", "DYNAMIC"],
    flags: ["-P=cluster", "--no-check", ...interruptedAt({ spawn: "" })],
    env: { TMPDIR: folder },
  });
  assertEquals((await chaos.status).code, 130, chaos.stderr.text);
  assertMatch(chaos.stderr.text, /^Interrupted after \d+ s: 0 runs were judged/m);
  assertEquals(left(), []);
  await Deno.remove(folder);
});
