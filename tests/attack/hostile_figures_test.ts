/** Figures that no honest client or worker reports must hide no other figure from the operator. */
import { METRICS } from "../../actors/dispatcher/protocol_metrics.ts";
import { scrape } from "../../server/pages/dispatcher_metrics.ts";
import { settle, TestCluster } from "../actors/dispatcher/lib.ts";
import { report, running, say } from "../actors/dispatcher/report/reports.ts";
import { LeatError } from "../../core/error.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { noReport } from "../lib/no_figures.ts";
import { Dataset } from "../../mod.ts";
import { ReportedUsage } from "../../platform/sandbox/reported_usage.ts";
import { NO_SPLITS, Sandbox, settingsOf } from "../platform/sandbox/sandbox_lib.ts";

const WRONG = [Infinity, -Infinity, NaN, -1, 1e308, -1e308];

/** A report in which every figure of a group is this number. */
function allOf(group: "client" | "order" | "process" | "task", value: number) {
  const reported = Object.entries(METRICS[group]).filter(([, [origin]]) =>
    origin === "counter" || origin === "level" || origin === "optional"
  );
  return Object.fromEntries(reported.map(([key]) => [key, value]));
}

Deno.test("wrong figures of one client hide no figure of another from the metrics", async () => {
  for (const wrong of WRONG) {
    await using cluster = await TestCluster.start();
    const { clientId: honest } = await running(cluster, ["w"]);
    const dataset = await cluster.dataset();
    const { clientId: liar } = await cluster.open(dataset, { jobName: "liar" });
    await say(cluster, honest, { atMs: 0 });
    await say(cluster, honest, { atMs: 1_000, elements: 7 });
    for (const atMs of [0, 1_000, 2_000]) {
      await say(cluster, liar, { ...allOf("client", wrong), ...allOf("order", wrong), atMs });
    }
    const { text } = await scrape(await cluster.ask("describe", null));
    const sample = `leat_client_elements_total{job="job",iteration="0",client="${honest}"} 7`;
    assertStringIncludes(text, sample, `${wrong}`);
    assert(!/(NaN|Inf|e\+?30\d)$/m.test(text), `${wrong}:\n${text}`);
  }
});

Deno.test("a job name that looks like the metrics' name for an unnamed job is refused", async () => {
  await using cluster = await TestCluster.start();
  const dataset = await cluster.dataset();
  const jobName = "(job 1 of one client)";
  const refused = () => cluster.open(dataset, { jobName });
  assertEquals(
    (await assertRejects(refused, LeatError, "must not begin")).code,
    "invalid_argument",
  );
});

Deno.test("control characters and tabs of a name are escaped in the metrics, and no name gets another's", async () => {
  await using cluster = await TestCluster.start();
  await cluster.worker("w").heartbeat();
  for (const jobName of ["j\t\x1b[2J\n", "j\\t\\x1b[2J\\n"]) {
    await cluster.open(await cluster.dataset(), { jobName });
  }
  const { text } = await scrape(await cluster.ask("describe", null));
  // The text format doubles each backslash again.
  for (const job of [String.raw`j\\t\\x1b[2J\\n`, String.raw`j\\\\t\\\\x1b[2J\\\\n`]) {
    assertStringIncludes(text, `leat_job_client_seconds_total{job="${job}"}`);
  }
});

Deno.test("wrong figures of a worker do not change later sums", async () => {
  for (const wrong of WRONG) {
    await using cluster = await TestCluster.start();
    const { workers: [worker], taskIds: [taskId = 0] } = await running(cluster, ["w"]);
    const process = { ...noReport("process"), shared: false };
    const used = (cpuSeconds: number) => ({ ...process, cpuSeconds });
    await report(cluster, worker!, { atMs: 0, process: used(0) });
    await report(cluster, worker!, {
      atMs: 1_000,
      process: { ...process, ...allOf("process", wrong) },
      stats: { [taskId]: allOf("task", wrong) },
    });
    const right = { [taskId]: { busyMs: 1_000 } };
    await report(cluster, worker!, { atMs: 2_000, process: used(10), stats: right });
    await report(cluster, worker!, { atMs: 3_000, process: used(46), stats: right });
    await settle();
    const description = await cluster.ask("describe", null);
    assertEquals(description.jobs[0]!.usage.workerCpuHours, 0.01, `${wrong}`);
    const { text } = await scrape(description);
    assertStringIncludes(text, 'leat_worker_cpu_seconds_total{worker="w"} 46', `${wrong}`);
    assert(!/(NaN|Inf|e\+?30\d)$/m.test(text), `${wrong}:\n${text}`);
  }
});

Deno.test("no function makes its worker count more time and memory than its process can have used", async () => {
  const memoryBytesMax = 3 * 2 ** 30;
  const startMs = performance.now();
  await using sandbox = await Sandbox.open({}, () => ({ memoryBytesMax }));
  const forging = Dataset.range(3).map((x) => {
    const { getPrototypeOf } = Object;
    // The encoder looks at the prototype of every value.
    Object.getPrototypeOf = (value) => {
      if (value !== null && typeof value === "object" && Object.hasOwn(value, "bytesRead")) {
        value.usage = { cpuSeconds: 1e300, memoryBytes: Number.MAX_SAFE_INTEGER };
      }
      return getPrototypeOf(value);
    };
    return x;
  });
  const runner = sandbox.runners.start(settingsOf(forging), NO_SPLITS);
  for (let i = 0; i < 3; i++) await runner.next();
  const { memoryBytes } = sandbox.runners.usage;
  assert(memoryBytes >= memoryBytesMax && memoryBytes < 2 * memoryBytesMax, `${memoryBytes}`);
  runner.dispose();
  await sandbox.processesEnded();
  const { cpuSeconds } = sandbox.runners.usage;
  // The spare process counts, too, and one that has taken its place.
  const processes = 3;
  const coreSeconds = navigator.hardwareConcurrency * (performance.now() - startMs) / 1_000;
  const cpuSecondsMax = processes * coreSeconds;
  assert(cpuSeconds > 0 && cpuSeconds <= cpuSecondsMax, `${cpuSeconds} of ${cpuSecondsMax}`);
});

Deno.test("the time that a process reports never falls", () => {
  const reported = new ReportedUsage({ startMs: 1_000, cores: 4, memoryBytesMax: 100 });
  const after = (nowMs: number, cpuSeconds: number, memoryBytes: number) => {
    reported.report({ cpuSeconds, memoryBytes }, nowMs);
    return reported.usage;
  };
  assertEquals(after(2_000, 3, 7), { cpuSeconds: 3, memoryBytes: 7 });
  assertEquals(after(3_000, 1, 100), { cpuSeconds: 3, memoryBytes: 100 });
  assertEquals(after(4_000, 100, 101), { cpuSeconds: 12, memoryBytes: 100 });
});
