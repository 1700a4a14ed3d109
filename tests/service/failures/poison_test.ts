/** A pipeline that ends its own processes, next to a healthy one on the same workers. */
import { Dataset, LeatError, LocalCluster, type ShardingPolicy } from "../../../mod.ts";
import { assert, assertEquals } from "../../assert.ts";

const MODES: readonly ShardingPolicy[] = ["OFF", "DYNAMIC", "DETERMINISTIC"];
const ELEMENTS = 600;

/** Ends its process at some element. */
function poisonOf(): Dataset<number> {
  return Dataset.range(40).map((x) => {
    // DETERMINISTIC checks the names in a function; this has none.
    if (x % 10 === 7) (() => 0).constructor("globalThis.process.exit(3)")();
    return x;
  });
}

/** Reads until the job fails: the codes of all failures. */
async function codesOf(dataset: Dataset<number>): Promise<string[]> {
  await using iterator = dataset.iterator();
  const codes: string[] = [];
  for (;;) {
    try {
      if ((await iterator.next()).done) return [...codes, "end"];
    } catch (error) {
      const { code, message } = LeatError.from(error);
      codes.push(code);
      if (code !== "aborted") continue;
      assert(/exit code 3.*exit code 3.*exit code 3/s.test(message), message);
      return codes;
    }
  }
}

Deno.test("a job whose function ends its process is failed after three, and a DYNAMIC one beside it gets every element", async () => {
  await using cluster = await LocalCluster.start({ workers: 2, carrier: "thread", confine: true });
  const service = cluster;
  const healthy = Dataset.range(ELEMENTS).distribute({ service, processingMode: "DYNAMIC" });
  const beside = Array.fromAsync(healthy);
  beside.catch(() => {});
  await Promise.all(MODES.map(async (processingMode) => {
    const jobName = `poison ${processingMode}`;
    const codes = await codesOf(poisonOf().distribute({ service, processingMode, jobName }));
    assertEquals(codes.at(-1), "aborted", processingMode);
    // Under DETERMINISTIC a split is repeated until it is given up; in other modes each death is
    // reported.
    const most = processingMode === "DETERMINISTIC" ? 1 : 3;
    assert(codes.length <= most, `${processingMode}: ${codes.join(", ")}`);
  }));
  const all = Array.from({ length: ELEMENTS }, (_, element) => element);
  assertEquals((await beside).sort((a, b) => a - b), all);
  // A restarted worker gets no task of them.
  await cluster.stopWorker(0);
  await cluster.restartWorker(0);
  const { jobs } = await cluster.describe();
  for (const mode of MODES) {
    const { tasks, failure } = jobs.find(({ name }) => name === `poison ${mode}`)!.iterations[0]!;
    assert(failure?.includes("3 runners"), failure);
    assert(tasks.every(({ state }) => state === "failed"), Deno.inspect(tasks));
  }
});
