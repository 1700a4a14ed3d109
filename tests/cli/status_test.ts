/** `deno task status`: the tables, and its errors. */

import { statusText } from "../../cli/cluster/status_text.ts";
import { Dataset, type DispatcherDescription, serveDispatcher, serveWorker } from "../../mod.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { noFigures } from "../lib/no_figures.ts";
import { startChild } from "../lib/child.ts";
import { freePort } from "../lib/free_port.ts";
import { until } from "../lib/until.ts";

const QUIET = { logLevel: "off" } as const;

/** Runs the program to its end. */
async function run(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  await using child = startChild("cli/status.ts", { args, flags: ["-P=status"] });
  const { code } = await child.status;
  return { code, stdout: child.stdout.text, stderr: child.stderr.text };
}

Deno.test("statusText shows jobs, clients, windows and workers, and why one is idle", () => {
  const usage = {
    workerCpuHours: 1.5,
    workerMemoryGBHours: 2,
    workerBusyHours: 1,
    clientHours: 3,
    workersDollars: 0.0375,
  };
  const task = {
    ...noFigures("task"),
    failure: null,
    sharing: {
      windowBytes: 3e6,
      windowBytesMax: 8e6,
      elements: 6,
      trainers: 4,
      produced: 10,
      served: 40,
      skipped: 1,
      hits: 30,
      misses: 10,
      hitRate: 0.75,
    },
    compression: {
      setting: "auto" as const,
      active: "zstd" as const,
      reason: "30 % of the bytes are left, at 10 MB/s over the network: 3.00 times as fast",
      bytes: 1e6,
      compressedBytes: 3e5,
      ms: 5,
    },
  };
  const state: DispatcherDescription = {
    clusterId: "c",
    scaling: {
      workers: 1,
      wanted: 3,
      minWorkers: 0,
      maxWorkers: 8,
      text: "3 workers wanted, 1 there: job resnet waits 40 % of its time.",
      jobs: [],
    },
    workers: [{
      name: "w1",
      ref: { node: "ws://10.0.0.7:5051", path: "/worker" },
      tags: [],
      alive: true,
      lastHeardMs: 0,
      tasks: 1,
      activity: { state: "idle", reason: "Nobody reads its jobs now." },
      figures: {
        ageMs: 0,
        process: {
          cpuSeconds: 9,
          memoryBytes: 512e6,
          shared: false,
          cpuCores: 1.25,
          runawayThreads: 2,
        },
        ...noFigures("task"),
        elementsPerSecond: 123.456,
        bytesPerSecond: 2e6,
        busyShare: 0.87,
      },
    }],
    jobs: [{
      jobId: 1,
      name: "resnet",
      parameters: { datasetId: "1", processingMode: "OFF", sharing: true },
      usage,
      iterations: [{
        iterationId: 1,
        repetition: 0,
        clients: 1,
        readers: [{ clientId: 77, consumerIndex: null, figures: null }],
        tasks: [{ taskId: 5, worker: "w1", state: "running", figures: task }],
        bottleneck: { kind: "unknown", text: "No figures yet." },
        optimalWorkers: 2.5,
        finished: false,
        splits: [{ repetition: 0, handedOut: 3, total: 9 }],
      }],
    }],
  };
  const shown = statusText(state);
  assertStringIncludes(shown, "1 of 1 worker alive, 1 job with 1 client");
  assertStringIncludes(shown, "resnet: No figures yet.");
  assertStringIncludes(shown, "3 workers wanted, 1 there: job resnet waits 40 % of its time.");
  assertMatch(shown, /resnet.*OFF, shared.*3 of 9.*2\.50.*1\.50.*2\.00.*0\.0375/);
  assertMatch(shown, /77.*resnet.*–.*–/);
  assertMatch(shown, /w1.*resnet.*75.*3\.0.*10.*40.*1/);
  assertMatch(shown, /w1.*10\.0\.0\.7:5051.*idle.*1.*87.*123.*2\.00.*1\.25.*512/);
  assertStringIncludes(shown, "w1 (idle): Nobody reads its jobs now.");
  assertEquals(shown.includes("follows in steps"), false);
  const [job] = state.jobs;
  const ended = { ...job!.iterations[0]!, clients: 0, readers: [], finished: true };
  const read = statusText({ ...state, jobs: [{ ...job!, iterations: [ended] }] });
  assertStringIncludes(read, "1 of 1 worker alive, 1 job without clients\n");
  assertMatch(read, /Jobs\n[^]*resnet/);
  assertStringIncludes(statusText({ ...state, jobs: [] }), "alive, no jobs\n");
  const bottleneck = { kind: "trainers_wait" as const, text: "About 6 would do." };
  const iterations = [{ ...job!.iterations[0]!, bottleneck, optimalWorkers: 5.2 }];
  const waiting = statusText({ ...state, jobs: [{ ...job!, iterations }] });
  assertMatch(waiting, /3 workers wanted.*newest figures alone; the number follows in steps/);
  const limited = { jobId: 2, name: "resnet", wanted: 3, kind: "limited" as const, text: "" };
  const other = { ...limited, jobId: 3, wanted: 1, kind: "more" as const };
  const scaling = { ...state.scaling, jobs: [other, limited] };
  const inVain = statusText({ ...state, scaling, jobs: [{ ...job!, iterations }] });
  assertEquals(inVain.includes("follows in steps"), false);
  assertStringIncludes(shown, "w1: 2 of its threads cannot be ended");
  assertStringIncludes(shown, "w1 compresses with zstd for resnet: 30 % of the bytes are left");
});

Deno.test("statusText shows untrusted names and texts without terminal escapes", () => {
  const text = "all is well\n\x1b[2Jno\tjobs\x1b]0;title\x07\u202e";
  const scaling = { workers: 0, wanted: 0, minWorkers: 0, maxWorkers: 8, text, jobs: [] };
  const shown = statusText({ clusterId: "c", scaling, workers: [], jobs: [] });
  assertStringIncludes(shown, "all is well\\n\\x1b[2Jno\\tjobs\\x1b]0;title\\x07\\u202e");
  assertEquals(shown.includes("\x1b"), false);
});

Deno.test("deno task status prints a dispatcher's state, as tables and as JSON", async () => {
  await using dispatcher = await serveDispatcher({ ...QUIET, token: "sesame" });
  const service = { dispatcher: dispatcher.address, token: "sesame" };
  await using _worker = await serveWorker({ ...QUIET, ...service, name: "w1" });
  await using iterator = Dataset.range(1_000).distribute({
    service: dispatcher.address,
    token: "sesame",
    jobName: "job",
  }).iterator();
  await iterator.next();
  const args = ["--dispatcher", dispatcher.address, "--token", "sesame"];
  const tables = await run(...args);
  assertEquals(tables.code, 0, tables.stderr);
  assertMatch(tables.stdout, /1 of 1 worker alive, 1 job with 1 client/);
  assertMatch(tables.stdout, /w1.*working|w1.*idle|w1.*starting/);
  const json = await run(...args, "--json");
  assertEquals(JSON.parse(json.stdout).jobs[0].name, "job");
});

Deno.test("deno task status --watch continues until it is stopped", async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  await using child = startChild("cli/status.ts", {
    flags: ["-P=status"],
    args: ["--dispatcher", dispatcher.address, "--watch", "--interval-ms", "100", "--json"],
  });
  for (let i = 0; i < 3; i++) await child.line(/"clusterId"/);
  child.kill("SIGTERM");
  assertEquals((await child.status).signal, "SIGTERM");
});

Deno.test("deno task status --watch waits for a dispatcher that was stopped and starts again", async () => {
  const options = { ...QUIET, port: freePort() };
  const dispatcher = await serveDispatcher(options);
  await using child = startChild("cli/status.ts", {
    flags: ["-P=status"],
    args: ["--dispatcher", dispatcher.address, "--watch", "--interval-ms", "100", "--json"],
  });
  const [, first] = await child.line(/"clusterId":"(\w+)"/);
  await dispatcher.close();
  await child.stderr.match(/No dispatcher answers at .*Waiting until it answers/);
  await using _restarted = await serveDispatcher(options);
  await child.line(new RegExp(`"clusterId":"(?!${first}")`));
});

Deno.test("deno task status --watch waits for a dispatcher that has not started yet", async () => {
  const options = { ...QUIET, port: freePort() };
  await using child = startChild("cli/status.ts", {
    flags: ["-P=status"],
    args: ["--dispatcher", `ws://127.0.0.1:${options.port}`].concat("--watch", "--json"),
  });
  await child.stderr.match(/No dispatcher answers at .*Waiting until it answers/);
  await using _dispatcher = await serveDispatcher(options);
  await child.line(/"clusterId"/);
});

Deno.test("deno task status --watch ends if what answers was no dispatcher from the beginning", async () => {
  const quiet = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  await using server = Deno.serve(quiet, () => new Response("<title>Shop</title>"));
  const { code, stderr } = await run(
    "--dispatcher",
    `ws://127.0.0.1:${server.addr.port}`,
    "--watch",
  );
  assertEquals(code, 1);
  assertMatch(stderr, /is no dispatcher/);
});

Deno.test("deno task status --watch waits while its token has sent too many requests, or a proxy answers", async () => {
  const state = { clusterId: "c", workers: [], jobs: [] };
  let requests = 0;
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => {
      requests++;
      if (requests === 2) return new Response(null, { status: 429 });
      if (requests === 3) return new Response("<title>Back soon</title>");
      return Response.json(state);
    },
  );
  await using child = startChild("cli/status.ts", {
    flags: ["-P=status"],
    args: ["--dispatcher", `ws://127.0.0.1:${server.addr.port}`]
      .concat("--watch", "--interval-ms", "100", "--json"),
  });
  for (let i = 0; i < 2; i++) await child.line(/"clusterId"/);
  await child.stderr.match(/limit of requests for one token.*Waiting until it answers/);
});

Deno.test("deno task status --watch ends when nobody reads its output any more", async () => {
  await using dispatcher = await serveDispatcher(QUIET);
  const child = new Deno.Command("deno", {
    args: ["run", "--quiet", "-P=status", "cli/status.ts", "--dispatcher", dispatcher.address]
      .concat("--watch", "--interval-ms", "100"),
    stdout: "piped",
    stderr: "null",
  }).spawn();
  let end: Deno.CommandStatus | undefined;
  const ended = child.status.then((status) => end = status);
  try {
    await child.stdout.cancel();
    assertEquals((await until(() => end)).code, 0);
  } finally {
    if (end === undefined) child.kill("SIGKILL");
    await ended;
  }
});

Deno.test("deno task status explains failures: no dispatcher, no token, a wrong one, a worker", async () => {
  await using dispatcher = await serveDispatcher({ ...QUIET, token: "sesame" });
  await using worker = await serveWorker({
    ...QUIET,
    dispatcher: dispatcher.address,
    token: "sesame",
  });
  const failureOf = async (address: string, ...args: string[]) => {
    const { code, stderr } = await run("--dispatcher", address, ...args);
    assertEquals(code, address === "nowhere" ? 2 : 1, stderr);
    return stderr;
  };
  const gone = `ws://127.0.0.1:${freePort()}`;
  const quiet = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  await using other = Deno.serve(quiet, () => Response.json({ workers: 3 }));
  const failures = await Promise.all([
    failureOf(gone),
    failureOf(dispatcher.address),
    failureOf(dispatcher.address, "--token", "open"),
    failureOf(worker.address, "--token", "sesame"),
    failureOf("nowhere"),
    failureOf(`${gone.replace("ws://", "http://user:secret@")}/?token=secret`),
    failureOf(`http://127.0.0.1:${other.addr.port}`),
  ]);
  const expected = [
    /No dispatcher answers at ws:.*refused.*deno task dispatcher/s,
    /wants a token: give it with --token-file/,
    /has another token/,
    /HTTP 426\) is no dispatcher: is it a worker's address/,
    /ws:\/\/host:port or wss:\/\/host:port, not "nowhere"/,
    /No dispatcher answers at http:\/\/127.*\/\?… \(/,
    /HTTP 200\) is no dispatcher/,
  ];
  for (const [i, pattern] of expected.entries()) assertMatch(failures[i]!, pattern);
  for (const text of failures) assert(!text.includes("secret"), text);
  assertEquals(failures[0]!.match(/refused/g)?.length, 1, failures[0]);
});

Deno.test("deno task status --help explains its options", async () => {
  const { code, stdout } = await run("--help");
  assertEquals(code, 0);
  assertMatch(stdout, /^Usage: deno task status/);
  assertMatch(stdout, /--watch/);
});
