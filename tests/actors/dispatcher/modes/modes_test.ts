/** The modes of jobs: what they refuse, and that the rest of the dispatcher leaves them alone. */
import { assertEquals, assertRejects, assertStringIncludes } from "../../../assert.ts";
import { LeatError } from "../../../../core/error.ts";
import { TestCluster } from "../lib.ts";

Deno.test("a job with an order of splits, or a save, is refused in modes that have none", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const ordered = { seed: "0123456789abcdef", shuffled: false };
  const inOrder = await assertRejects(
    () => cluster.open(datasetId, { processingMode: "OFF", ordered }),
    LeatError,
  );
  assertStringIncludes(
    inOrder.message,
    "An order of splits goes with processingMode DETERMINISTIC",
  );
  const save = { folder: "/saved", overwrite: false, fingerprint: "numbers" };
  const saved = await assertRejects(
    () => cluster.open(datasetId, { processingMode: "DYNAMIC", jobName: "save", save, ordered }),
    LeatError,
  );
  assertStringIncludes(saved.message, "A save goes with processingMode DETERMINISTIC, not DYNAMIC");
});

/** The list of all modes, for the shape of requests. */
const NAMES_MODES = "protocol_check.ts";
/** A question which mode it is, or a look at what one of them remembers. */
const QUESTION =
  /\bShardingPolicy\.|\bprocessingMode [!=]==|\biteration\.(?:ordered|rounds|saving|shardsDone)\b|\{[^{}]*\b(?:ordered|saving|shardsDone)\b[^{}]*\}(?:: Iteration| = iteration)\b/;

async function* filesBelow(folder: URL): AsyncGenerator<URL> {
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory && name !== "modes") yield* filesBelow(new URL(`${name}/`, folder));
    else if (name.endsWith(".ts")) yield new URL(name, folder);
  }
}

Deno.test("the dispatcher asks nowhere but in modes/ which mode a job has", async () => {
  const asking: string[] = [];
  let count = 0;
  for await (const file of filesBelow(new URL("../../../../actors/dispatcher/", import.meta.url))) {
    const name = file.pathname.split("/").at(-1)!;
    if (name === NAMES_MODES) continue;
    count++;
    const found = QUESTION.exec(await Deno.readTextFile(file));
    if (found !== null) asking.push(`${name}: ${found[0]}`);
  }
  assertEquals(asking, []);
  assertEquals(count > 50, true);
});
