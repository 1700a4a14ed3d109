/** A local cluster whose pipelines are confined, on carriers within one process. */
import { Dataset, LeatError, LocalCluster } from "../../../mod.ts";
import { assertEquals, assertMatch, assertRejects, assertStringIncludes } from "../../assert.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { until } from "../../lib/until.ts";

for (const carrier of ["inline", "thread"] as const) {
  Deno.test(`LocalCluster with confine runs a job within its grants (${carrier})`, async () => {
    await using folder = await TempFolder.make();
    await Deno.writeTextFile(`${folder.path}/lines.txt`, "one\ntwo\nthree\n");
    await using cluster = await LocalCluster.start({
      workers: 2,
      carrier,
      confine: { dataRoots: [folder.path] },
    });
    const lines = Dataset.textLines(`${folder.path}/lines.txt`).map((line) => line.length);
    const distributed = lines.distribute({ service: cluster, processingMode: "DYNAMIC" });
    const lengths: number[] = [];
    for await (const length of distributed) lengths.push(length);
    assertEquals(lengths.sort(), [3, 3, 5]);
    const asking = Dataset.from(["/etc/passwd"])
      .map((path) => new Function("path", "return Deno.readTextFileSync(path)")(path));
    const denied = asking.distribute({ service: cluster });
    await using iterator = denied.iterator();
    const error = await assertRejects(() => iterator.next(), LeatError) as LeatError;
    assertEquals(error.code, "permission_denied");
    assertStringIncludes(error.message, "--data-root=/etc");
  });
}

Deno.test("a job whose runners end themselves fails with the reason, and another continues", async () => {
  await using cluster = await LocalCluster.start({ workers: 1, carrier: "thread", confine: true });
  const service = cluster;
  const ending = Dataset.range(4).map((x) => {
    (globalThis as unknown as { process: { exit(code: number): void } }).process.exit(3 + x);
    return x;
  });
  await using lost = ending.distribute({ service, processingMode: "DYNAMIC" }).iterator();
  const failing = assertRejects(() => lost.next(), LeatError) as Promise<LeatError>;
  const beside: number[] = [];
  const numbers = Dataset.range(1_000).distribute({ service, processingMode: "DYNAMIC" });
  for await (const x of numbers) beside.push(x);
  assertEquals(beside.sort((a, b) => a - b), Array.from({ length: 1_000 }, (_, i) => i));
  assertMatch(Deno.inspect(await failing), /exit code 3/);
});

Deno.test("LocalCluster refuses to confine to a missing folder", async () => {
  const start = () => LocalCluster.start({ confine: { dataRoots: ["/no/such/folder"] } });
  const error = await assertRejects(start, LeatError) as LeatError;
  assertEquals(error.code, "not_found");
});

Deno.test("a LocalCluster logs why it scales no more once no worker can be confined", async () => {
  const told: string[] = [];
  const kept = console.error;
  console.error = (line: string) => void told.push(line);
  try {
    await using cluster = await LocalCluster.start({
      ...{ workers: { min: 0, max: 1 }, scaling: { intervalMs: 1 }, carrier: "inline" },
      ...{ confine: { heapBytesMax: 1 }, logLevel: "error" },
    });
    const waiting = Dataset.range(1).distribute({ service: cluster, processingMode: "OFF" });
    await using iterator = waiting.iterator();
    const next = iterator.next().catch(() => {});
    await until(() => told.length > 0);
    assertMatch(told[0]!, /ERROR The number of workers stays as it is: .*sandbox.heapBytesMax/);
    await cluster.close();
    await next;
  } finally {
    console.error = kept;
  }
});
