/** The program cli/plan.ts, run as a process. */
import type { Plan } from "../../../cli/plan/report.ts";
import { assert, assertEquals, assertStringIncludes } from "../../assert.ts";
import { startChild } from "../../lib/child.ts";
import { namesIn, TempFolder } from "../../lib/temp_folder.ts";
import { interruptedAt } from "../interruption.ts";
import { codeOf, FLAGS, withModule } from "./plan_modules.ts";

Deno.test("cli/plan.ts plans for its own pipeline, and names the flag for a module's denied access", async () => {
  await using plan = startChild("cli/plan.ts", {
    args: [
      ...["cli/plan/demo_pipeline.ts", "--step-ms", "20", "--seconds", "0.2"],
      ...["--workers-max", "2", "--json"],
    ],
    flags: FLAGS,
  });
  assertEquals((await plan.status).code, 0, plan.stderr.text);
  const { measured, modelled }: Plan = JSON.parse(plan.stdout.text);
  assert(measured.batches >= 3 && measured.splitsPerBatch! > 1);
  assert(measured.splitMs > 0, `${measured.splitMs} ms for a split`);
  assertEquals(measured.operators.map(({ operator }) => operator).slice(0, 3), [
    ...["prefetch", "paddedBatch", "map"],
  ]);
  assertEquals(modelled.colocated.workers, 0);
  await withModule("Deno.env.get('HOME'); export default Dataset.range(3);", async (path) => {
    await using denied = startChild("cli/plan.ts", {
      args: [path, "--step-ms", "20"],
      flags: FLAGS,
    });
    assertEquals((await denied.status).code, 1);
    assertStringIncludes(
      denied.stderr.text,
      "deno run --no-prompt -P=plan --allow-env cli/plan.ts",
    );
  });
  const bound = "const k = 2; export default Dataset.range(3).map((x) => x + k);";
  await withModule(bound, async (path) => {
    await using refused = startChild("cli/plan.ts", {
      args: [path, "--step-ms", "20"],
      flags: FLAGS,
    });
    assertEquals((await refused.status).code, 1);
    assertEquals(
      refused.stderr.text.split("cannot travel to another thread").length,
      2,
      "said once",
    );
  });
  await using wrong = startChild("cli/plan.ts", {
    args: ["x.ts", "--step-ms", "0"],
    flags: FLAGS,
  });
  assertEquals((await wrong.status).code, 2);
  assertStringIncludes(wrong.stderr.text, "--step-ms is '0', but has to be");
});

Deno.test("cli/plan.ts --verify keeps the plan of a pipeline that DYNAMIC refuses", async () => {
  const undivided = "export default Dataset.fromGenerator(function* () { yield* [1, 2, 3]; });";
  await withModule(undivided, async (path) => {
    await using plan = startChild("cli/plan.ts", {
      args: [path, "--step-ms", "20", "--seconds", "0.1", "--workers-max", "1", "--verify", "1"],
      flags: FLAGS,
    });
    assertEquals(await codeOf(plan), 1);
    assertStringIncludes(plan.stdout.text, "Next bottleneck");
    assertStringIncludes(plan.stdout.text, "NOT VERIFIED with 1 real worker: ");
  });
});

Deno.test("cli/plan.ts handles Ctrl-C while a user's function never yields", async () => {
  const spinning = "export default Dataset.range(3).map(() => { for (;;); });";
  await withModule(spinning, async (path) => {
    await using plan = startChild("cli/plan.ts", {
      args: [path, "--step-ms", "20"],
      flags: FLAGS,
    });
    await plan.stderr.match(/^Running /);
    // By then the function runs, or Ctrl-C would be handled anyway.
    await new Promise((resolve) => setTimeout(resolve, 200));
    plan.kill("SIGINT");
    assertEquals(await codeOf(plan), 130);
    assertStringIncludes(plan.stderr.text, "Interrupted: nothing was measured yet");
  });
});

Deno.test("cli/plan.ts --json reserves standard output for the plan, whatever a module prints", async () => {
  const talking = `console.log("at the top");
    export default Dataset.range(1000).map((x) => {
      console.log("of element", x);
      console.table([{ x }]);
      return x;
    }).batch(10);`;
  await withModule(talking, async (path) => {
    const args = [path, "--step-ms", "20", "--seconds", "0.1", "--workers-max", "1", "--json"];
    await using plan = startChild("cli/leat.ts", { args: ["plan", ...args], flags: FLAGS });
    assertEquals(await codeOf(plan), 0, plan.stderr.text);
    const { measured, commandLine }: Plan = JSON.parse(plan.stdout.text);
    assert(measured.batches > 0);
    assertEquals(commandLine, `deno task plan ${args.join(" ")}`);
    for (const part of ["at the top", "of element 7", "│"]) {
      assertStringIncludes(plan.stderr.text, part);
    }
  });
});

Deno.test("cli/plan.ts leaves no folder behind after Ctrl-C while it measures a split", async () => {
  await using temporary = await TempFolder.make();
  await withModule("export default Dataset.range(1000).batch(2).repeat();", async (path) => {
    await using plan = startChild("cli/plan.ts", {
      args: [path, "--step-ms", "20", "--seconds", "0.3"],
      // It requests splits once there is a journal.
      flags: [...FLAGS, ...interruptedAt({ contents: "leat-plan-" })],
      env: { TMPDIR: temporary.path },
    });
    assertEquals(await codeOf(plan), 130, plan.stderr.text);
    assertEquals(await namesIn(temporary.path), []);
  });
});

Deno.test("cli/plan.ts names the module whose thread died of an uncaught error", async () => {
  const deadly = "export default () => { setTimeout(() => { throw new Error('died') }); " +
    "return Dataset.range(3).map(() => new Promise(() => {})); };";
  await withModule(deadly, async (path) => {
    await using plan = startChild("cli/plan.ts", {
      args: [path, "--step-ms", "20"],
      flags: FLAGS,
    });
    assertEquals(await codeOf(plan), 1);
    assertStringIncludes(plan.stderr.text, `The thread of '${path}' has died`);
  });
});

Deno.test("cli/plan.ts names the call with which a module tried to end its thread, also if the error was caught", async () => {
  const read = "return Dataset.range(3).map(() => new Promise(() => {}));";
  const ends: [call: string, code: string][] = [
    ["Deno.exit(3)", "Deno.exit(3); export default Dataset.range(3);"],
    [
      "close()",
      `export default () => { try { self.close(); } catch { /* in vain */ } ${read} };`,
    ],
    [
      "process.exit(0)",
      `import { exit } from "node:process";
      export default () => { setTimeout(() => exit(0)); ${read} };`,
    ],
  ];
  for (const [call, code] of ends) {
    await withModule(code, async (path) => {
      await using plan = startChild("cli/plan.ts", {
        args: [path, "--step-ms", "20"],
        flags: FLAGS,
      });
      assertEquals(await codeOf(plan), 1);
      assertStringIncludes(plan.stderr.text, `'${path}' called ${call}, and a module that ends`);
    });
  }
});
