/** The properties of a distributed dataset before it is read, and its errors. */
import {
  Dataset,
  type DispatcherServerConfig,
  type DistributeOptions,
  LeatError,
  LocalCluster,
  type LocalClusterOptions,
  type LocalWorkerOptions,
  serveDispatcher,
  serveWorker,
  ShardingPolicy,
  type StorageOptions,
  TensorSpec,
  type TokenEntry,
  UNKNOWN_CARDINALITY,
} from "../../../mod.ts";
import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { outcomesOf } from "../../data/lib/outcomes.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { testInline, testOnEach } from "../lib/carriers.ts";
import { workerRange } from "../../../server/cluster/local_roles.ts";

const service = "ws://127.0.0.1:1";

/** Distributes with options as an untyped program may pass them. */
function distribute(
  options: Record<string, unknown>,
  dataset: Dataset<unknown> = Dataset.range(4),
) {
  return dataset.distribute(options as unknown as DistributeOptions);
}

const UNKNOWN = UNKNOWN_CARDINALITY;

/** Cardinalities by policy, of a dataset that is finite, endless, empty, and of unknown size. */
const CARDINALITIES: Readonly<Record<ShardingPolicy, [number, number, number, number]>> = {
  OFF: [UNKNOWN, Infinity, 0, UNKNOWN],
  DYNAMIC: [UNKNOWN, Infinity, 0, UNKNOWN],
  FILE: [UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN],
  DATA: [UNKNOWN, Infinity, 0, UNKNOWN],
  FILE_OR_DATA: [UNKNOWN, UNKNOWN, 0, UNKNOWN],
  HINT: [UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN],
  DETERMINISTIC: [UNKNOWN, Infinity, 0, UNKNOWN],
};

Deno.test("the cardinality of a distributed dataset follows from its policy", () => {
  const datasets = [
    Dataset.range(4),
    Dataset.range(4).repeat(),
    Dataset.range(0),
    Dataset.range(4).filter((x) => x > 1),
  ];
  for (const [processingMode, wanted] of Object.entries(CARDINALITIES)) {
    const found = datasets.map((dataset) => distribute({ service, processingMode }, dataset));
    assertEquals(found.map((dataset) => dataset.cardinality()), wanted, processingMode);
    const after = distribute({ service, processingMode }, datasets[1]!).take(5).batch(2);
    assertEquals(after.cardinality(), wanted[1] === Infinity ? 3 : UNKNOWN, processingMode);
  }
  const rounds = { service, jobName: "j", numConsumers: 2, consumerIndex: 0 };
  assertEquals(distribute(rounds).cardinality(), Infinity);
});

Deno.test("the elementSpec of a distributed dataset is that of its pipeline", () => {
  const spec = {
    image: new TensorSpec("uint8", [null, null, 3]),
    label: new TensorSpec("int32", []),
  };
  const named = Dataset.range(4).map((x) => x as unknown, { spec });
  const datasets: Dataset<unknown>[] = [
    ...[
      Dataset.range(4).batch(2),
      named,
      named.batch(2),
      Dataset.from(["a"]),
      Dataset.from([[1n]]),
    ],
    ...[Dataset.range(4).map((x) => x), Dataset.fromTensorSlices({ x: [[1, 2], [3, 4]] })],
  ];
  for (const dataset of datasets) {
    for (const processingMode of Object.values(ShardingPolicy)) {
      assertEquals(
        distribute({ service, processingMode }, dataset).elementSpec,
        dataset.elementSpec,
      );
    }
  }
});

/** Invalid options, and their errors. */
const REFUSED: Record<string, [Record<string, unknown>, ...string[]]> = {
  "no service": [{}, "distribute: service", "undefined"],
  "an empty service": [{ service: "" }, "service", "ws://host:port", '""'],
  "a service that is no text": [{ service: 1 }, "service", "ws://host:port", "1"],
  "a service of another protocol": [{ service: "grpc://a:1" }, "service", "grpc://a:1"],
  "a service of two protocols": [{ service: "ws://wss://a:1" }, "service", "ws://wss://a:1"],
  "a service without protocol": [{ service: "a:5050" }, "ws://a:5050"],
  "a service with a path": [{ service: "ws://a:5050/path" }, "service", "ws://a:5050/path"],
  "a service null": [{ service: null }, "service", "null"],
  "a mode that there is not": [
    { service, processingMode: "distributed" },
    "processingMode",
    "DYNAMIC",
  ],
  "a mode in other letters": [
    { service, processingMode: "dynamic" },
    "processingMode",
    '"dynamic"',
  ],
  "a mode by its number": [{ service, processingMode: 1 }, "processingMode", "1"],
  "a mode null": [{ service, processingMode: null }, "processingMode", "null"],
  "an empty job name": [{ service, jobName: "" }, "jobName", "non-empty"],
  "a job name that is no text": [{ service, jobName: 7 }, "jobName", "7"],
  "consumers without a job": [{ service, numConsumers: 2, consumerIndex: 0 }, "jobName"],
  "consumers without an index": [{ service, jobName: "j", numConsumers: 2 }, "consumerIndex"],
  "an index without consumers": [{ service, jobName: "j", consumerIndex: 0 }, "numConsumers"],
  "an index beyond": [
    { service, jobName: "j", numConsumers: 2, consumerIndex: 2 },
    "consumerIndex",
  ],
  "an index below": [
    { service, jobName: "j", numConsumers: 2, consumerIndex: -1 },
    "consumerIndex",
  ],
  "no consumers": [{ service, jobName: "j", numConsumers: 0, consumerIndex: 0 }, "numConsumers"],
  "half a consumer": [
    { service, jobName: "j", numConsumers: 1.5, consumerIndex: 0 },
    "numConsumers",
  ],
  "no requests": [{ service, maxOutstandingRequests: 0 }, "maxOutstandingRequests", "0"],
  "half a request": [{ service, maxOutstandingRequests: 1.5 }, "maxOutstandingRequests", "1.5"],
  "endless requests": [{ service, maxOutstandingRequests: Infinity }, "maxOutstandingRequests"],
  "a compression that there is not": [{ service, compression: "snappy" }, "compression", "snappy"],
  "a target that there is not": [{ service, targetWorkers: "remote" }, "targetWorkers", "local"],
  "a target that is none": [{ service, targetWorkers: null }, "targetWorkers"],
  "tags that are no array": [{ service, targetTags: "a" }, "targetTags"],
  "sharing without a trainer": [{ service, jobName: "j", sharing: {} }, "trainerId"],
  "sharing without a job": [{ service, sharing: { trainerId: "t" } }, "jobName"],
  "sharing each element once": [
    { service, jobName: "j", sharing: { trainerId: "t" }, processingMode: "DETERMINISTIC" },
    "DETERMINISTIC",
    "another processingMode",
  ],
  "sharing and rounds": [
    { service, jobName: "j", sharing: { trainerId: "t" }, numConsumers: 2, consumerIndex: 0 },
    "not both",
  ],
  "rounds of local workers": [
    { service, jobName: "j", targetWorkers: "local", numConsumers: 2, consumerIndex: 0 },
    "local",
  ],
  "an option that there is not": [{ service, processing_mode: "OFF" }, "processing_mode"],
  "an option of tf.data's": [{ service, job_name: "j" }, "job_name", "jobName"],
};

for (const [name, [options, ...parts]] of Object.entries(REFUSED)) {
  Deno.test(`distribute refuses ${name} when it is called`, () => {
    const error = assertThrows(() => distribute(options), LeatError);
    assertEquals(error.code, "invalid_argument");
    for (const part of ["distribute", ...parts]) {
      assert(error.message.includes(part), `"${part}" in "${error.message}"`);
    }
    // The same holds when it is read by its id.
    if (!("service" in options) || "compression" in options) return;
    const { service: place, ...others } = options;
    const fromId = () => Dataset.fromId(place as string, "d", others);
    assertEquals(assertThrows(fromId, LeatError).code, "invalid_argument");
  });
}

Deno.test("a cluster with invalid options is refused, and nothing is left running", async () => {
  const refused: Record<string, unknown>[] = [
    ...[{ workers: -1 }, { workers: 1.5 }, { workers: "2" }, { workers: NaN }],
    ...[{ carrier: "grpc" }, { heartbeatMs: -1 }, { clientRefreshMs: NaN }, {
      workerTimeoutMs: "1",
    }],
    ...[
      { workerTimeoutMs: 0 },
      { clientTimeoutMs: 1 },
      { jobGcTimeoutMs: -2 },
      { clientTimeoutMs: -1 },
      { heartbeat: 5 },
      { journal: "" },
    ],
    ...[{ journal: 5 }, { runners: "process" }, { logLevel: "loud" }, { skipAfterMs: -1 }],
    ...["x", "token", { tokn: "x" }, { token: 5 }].map((opens) => ({
      services: { [opens === "x" ? "x:1" : service]: opens },
    })),
  ];
  for (const options of refused) {
    const start = () =>
      LocalCluster.start({ carrier: "inline", ...options } as LocalClusterOptions);
    const error = await assertRejects(
      async () => {
        const cluster = await start();
        await cluster.close();
      },
      LeatError,
    );
    assertEquals(error.code, "invalid_argument", Deno.inspect(options));
    const [name] = Object.keys(options);
    assert(error.message.includes(name!), error.message);
  }
});

Deno.test("a cluster with an unusable journal is refused with the reason, before anything is started", async () => {
  await using temporary = await TempFolder.make({ file: "" });
  const refused = async (journal: string) => {
    const start = () => LocalCluster.start({ workers: 1, carrier: "inline", journal });
    const { code, message } = await assertRejects(start, LeatError);
    assertStringIncludes(message, `Cannot use the journal in ${journal}`);
    return code;
  };
  assertEquals(await refused(`${temporary.path}/file`), "invalid_argument");
  const journal = `${temporary.path}/journal`;
  await using cluster = await LocalCluster.start({ workers: 1, carrier: "inline", journal });
  assertEquals(await refused(journal), "failed_precondition");
  assertEquals((await cluster.describe()).workers.length, 1);
});

testOnEach(
  "a cluster can be asked about itself as soon as its dispatcher is back",
  async (start) => {
    await using cluster = await start({ workers: 1 });
    for (const ask of ["describe", "actors", "sources"] as const) {
      await cluster[ask]();
      await cluster.stopDispatcher();
      await cluster.restartDispatcher();
      await cluster[ask]();
    }
  },
);

testInline("times of 0 are as short as possible, and nothing else changes", async (start) => {
  const times = { heartbeatMs: 0, clientRefreshMs: 0, jobGcTimeoutMs: 0, skipAfterMs: 0 };
  await using cluster = await start({ workers: 2, ...times });
  for (const processingMode of ["OFF", "DYNAMIC", "DATA", "DETERMINISTIC"] as const) {
    const numbers = Dataset.range(50).batch(5).distribute({ service: cluster, processingMode });
    const batches = await outcomesOf(numbers.iterator());
    assertEquals(batches.length, processingMode === "OFF" ? 20 : 10, processingMode);
  }
});

testInline("impossible requests to a cluster are refused", async (start) => {
  await using cluster = await start({ workers: 1 });
  const refused: readonly [() => Promise<unknown>, string, string][] = [
    [() => cluster.stopWorker(7), "not_found", "worker 7"],
    [() => cluster.restartWorker(-1), "not_found", "worker -1"],
    [() => cluster.restartWorker(0), "failed_precondition", "stopped first"],
    [() => cluster.restartDispatcher(), "failed_precondition", "stop it first"],
    [() => cluster.addWorker({ tags: [""] }), "invalid_argument", "tags"],
    [() => cluster.addWorker({ tag: "a" } as LocalWorkerOptions), "invalid_argument", '"tag"'],
  ];
  for (const [call, code, message] of refused) {
    assertEquals((await assertRejects(call, LeatError, message)).code, code);
  }
  assertEquals(cluster.workers, 1);
  for (let times = 0; times < 2; times++) await cluster.stopWorker(0);
  for (let times = 0; times < 2; times++) await cluster.stopDispatcher();
  await assertRejects(() => cluster.restartWorker(0), LeatError, "has been stopped");
  await cluster.restartDispatcher();
  await cluster.restartWorker(0);
  const numbers = Dataset.range(10).distribute({ service: cluster });
  assertEquals((await Array.fromAsync(numbers)).length, 10);
});

Deno.test("LocalCluster.start refuses times of storage that are too long for a timer", async () => {
  const long = 2 ** 31;
  const refused: readonly [LocalClusterOptions, string][] = [
    [{ storageLatencyMs: long }, "storageLatencyMs"],
    [{ storage: { requests: { timeoutMs: long } } }, "storage.requests: timeoutMs"],
    [{ storage: { requests: { backoffMs: long } } }, "storage.requests: backoffMs"],
    [{ storage: { requests: { backoffMsMax: NaN } } }, "storage.requests: backoffMsMax"],
  ];
  for (const [options, name] of refused) {
    const start = async () => {
      await using _cluster = await LocalCluster.start({ workers: 0, ...options });
    };
    const { code } = await assertRejects(start, LeatError, name);
    assertEquals(code, "invalid_argument");
  }
});

Deno.test("LocalCluster refuses to start more workers than one host can run, and takes any max", async () => {
  const start = () => LocalCluster.start({ workers: 2 ** 53 });
  const { code } = await assertRejects(start, LeatError, "a whole number from 0 to 1024");
  assertEquals(code, "invalid_argument");
  assertEquals(workerRange({ workers: { min: 0, max: 1_000_000 } }), { min: 0, max: 1_000_000 });
});

testInline(
  "a job runs on workers whose storage waits between attempts without a limit",
  async (start) => {
    const requests = { backoffMsMax: Infinity };
    await using cluster = await start({ workers: 1, storage: { requests } });
    const numbers = Dataset.range(3).distribute({ service: cluster });
    assertEquals((await Array.fromAsync(numbers)).length, 3);
  },
);

Deno.test("servers refuse invalid options by name", async () => {
  const dispatcher = "ws://127.0.0.1:1";
  const refused: readonly [() => Promise<{ close(): Promise<void> }>, string][] = [
    [() => serveDispatcher({ workerTimeoutMs: -1 }), "workerTimeoutMs"],
    [() => serveDispatcher({ port: 70_000 }), "port"],
    [() => serveDispatcher({ work_dir: "/x" } as DispatcherServerConfig), "work_dir"],
    [() => serveWorker({ dispatcher, heartbeatMs: NaN }), "heartbeatMs"],
    [() => serveWorker({ dispatcher, name: "" }), "name"],
    [() => serveWorker({ dispatcher: "" }), "dispatcher"],
    [
      () => serveWorker({ dispatcher, storage: { requests: { attemptsMax: 0 } } }),
      "storage.requests: attemptsMax",
    ],
    [
      () => serveWorker({ dispatcher, storage: { request: {} } as StorageOptions }),
      'storage: there is no option "request"',
    ],
    [
      () => serveWorker({ dispatcher, storage: { s3: { accesKeyId: "k" } } as StorageOptions }),
      'storage.s3: there is no option "accesKeyId"',
    ],
    [
      () => LocalCluster.start({ storage: { s3: { addressing: "paths" } } as never }),
      "LocalCluster: storage.s3: addressing",
    ],
    [() => serveWorker({ dispatcher, work_dir: "/x" } as { dispatcher: string }), "work_dir"],
    [() => serveWorker({ dispatcher, sandbox: { dataRoots: "/x" as never } }), "dataRoots must be"],
    [() => serveWorker({ dispatcher, sandbox: true, tokens: "x" as never }), "tokens"],
    ...[{}, null, { role: "client", token: "x".repeat(16) }, { name: "a", role: "client" }].map(
      (entry): [() => Promise<{ close(): Promise<void> }>, string] => [
        () => serveDispatcher({ tokens: [entry as TokenEntry] }),
        "serveDispatcher: tokens[0] must be { name, role, token }",
      ],
    ),
    [() => serveDispatcher({ tokens: { file: 5 as never } }), "tokens"],
  ];
  for (const [start, name] of refused) {
    const error = await assertRejects(async () => await (await start()).close(), LeatError, name);
    assertEquals(error.code, "invalid_argument", error.message);
  }
});

Deno.test("a LocalCluster that has been closed says so, whatever it is asked for", async () => {
  const cluster = await LocalCluster.start({ workers: 1, carrier: "inline", runners: "inline" });
  await cluster.close();
  const calls = {
    actors: () => cluster.actors(),
    addWorker: () => cluster.addWorker(),
    describe: () => cluster.describe(),
    restartDispatcher: () => cluster.restartDispatcher(),
    restartWorker: () => cluster.restartWorker(0),
    sources: () => cluster.sources(),
  };
  for (const [name, call] of Object.entries(calls)) {
    const error = await assertRejects(call, LeatError, "The local cluster has been closed");
    assertEquals(error.code, "cancelled", name);
  }
});
