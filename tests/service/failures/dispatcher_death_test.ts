/**
 * A dispatcher of a local cluster that dies: it is not restarted by itself, so readers must not
 * wait for it.
 */
import { DatabaseSync } from "node:sqlite";
import {
  Dataset,
  distributedSave,
  LeatError,
  LocalCluster,
  type LocalClusterOptions,
  registerDataset,
} from "../../../mod.ts";
import { LocalFleet } from "../../../server/cluster/local_fleet.ts";
import { assert, assertEquals, assertMatch, assertRejects } from "../../assert.ts";
import { KnownWorker, knowWorkers } from "../../lib/known_workers.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { until } from "../../lib/until.ts";
import { numbersOf, sorted, upTo } from "../lib/carriers.ts";
import { returned } from "../lib/fixture_slow.ts";
import { slowly } from "../lib/slowly.ts";

const WHY = /^The dispatcher of local-\d+ has ended by itself: .*died for the test/;

const MODES = ["OFF", "DYNAMIC", "DETERMINISTIC"] as const;

function start(options: LocalClusterOptions = {}): Promise<LocalCluster> {
  return LocalCluster.start({
    carrier: "inline",
    placement: { dispatcher: "thread" },
    workers: 1,
    runners: "inline",
    heartbeatMs: 50,
    clientRefreshMs: 20,
    logLevel: "off",
    ...options,
  });
}

function killDispatcher(): void {
  const thread = KnownWorker.all.findLast(({ name }) => name?.endsWith("-dispatcher"));
  assert(thread !== undefined);
  thread.die();
}

/** The error with which it ends: a hang becomes a failure of the test. */
async function failureOf(work: Promise<unknown>): Promise<LeatError> {
  let failure: unknown;
  work.then(() => failure = "nothing", (error) => failure = error);
  const error = await until(() => failure);
  assert(error instanceof LeatError, `it failed with ${error}`);
  return error;
}

async function drained(
  elements: AsyncIterable<unknown>,
  onElement: () => unknown = () => {},
): Promise<void> {
  for await (const _ of elements) onElement();
}

Deno.test("readers and savers of a LocalCluster whose dispatcher dies fail with the reason, and it can be closed", async () => {
  using _known = knowWorkers();
  await using folder = await TempFolder.make({});
  await using cluster = await start();
  const endless = Dataset.range(10).repeat();
  const works: Promise<LeatError>[] = [];
  const read = new Set<string>();
  for (const processingMode of MODES) {
    const elements = endless.distribute({ service: cluster, processingMode });
    works.push(failureOf(drained(elements, () => read.add(processingMode))));
  }
  const slow = Dataset.range(1e6).map(slowly);
  let isSaving = false;
  const path = `${folder.path}/saved`;
  const saving = distributedSave(slow, path, cluster, { onProgress: () => isSaving = true });
  works.push(failureOf(saving));
  await until(() => isSaving && read.size === MODES.length);
  killDispatcher();
  for (const work of works) {
    const { code, message } = await work;
    assertMatch(message, WHY);
    assertEquals(code, "internal");
  }
  for (
    const begin of [
      () => drained(endless.distribute({ service: cluster })),
      () => registerDataset(cluster, endless),
      () => cluster.describe(),
      () => cluster.addWorker(),
    ]
  ) assertMatch((await failureOf(begin())).message, WHY);
  await cluster.close();
  await returned();
});

/**
 * Makes journals of this thread fail, until the result is disposed or so many attempts have failed.
 */
function failJournals(attempts = Infinity): Disposable & { readonly failed: number } {
  const { exec } = DatabaseSync.prototype;
  let failed = 0;
  DatabaseSync.prototype.exec = function (sql) {
    if (failed < attempts && sql.includes("BEGIN")) {
      failed++;
      throw new Error("the disk is gone");
    }
    return exec.call(this, sql);
  };
  return {
    get failed() {
      return failed;
    },
    [Symbol.dispose]: () => {
      DatabaseSync.prototype.exec = exec;
    },
  };
}

/** Makes dispatchers give up sooner, until the result is disposed. */
function giveUpSoon(): Disposable {
  const { start } = LocalFleet.prototype;
  LocalFleet.prototype.start = function (carrier, name, role) {
    const isDispatcher = role.role === "dispatcher";
    const hasty = isDispatcher ? { ...role, supervision: { intensity: 2 } } : role;
    return start.call(this, carrier, name, hasty);
  };
  return {
    [Symbol.dispose]: () => {
      LocalFleet.prototype.start = start;
    },
  };
}

for (const dispatcher of ["inline", "websocket"] as const) {
  Deno.test(`a dispatcher of a LocalCluster continues once its journal can be written again, and nothing is lost (${dispatcher})`, async () => {
    await using folder = await TempFolder.make({});
    await using cluster = await start({ placement: { dispatcher }, journal: folder.path });
    // Each restart comes later than the one before, and the fifth a third of a second after the
    // first.
    const failures = 5;
    using fails = failJournals(failures);
    const numbers = await numbersOf(Dataset.range(20).batch(4).distribute({ service: cluster }));
    assertEquals(fails.failed, failures);
    assertEquals(sorted(numbers), upTo(20));
  });

  Deno.test(`a dispatcher of a LocalCluster whose journal keeps failing gives up and dies (${dispatcher})`, async () => {
    using _soon = giveUpSoon();
    await using folder = await TempFolder.make({});
    await using cluster = await start({ placement: { dispatcher }, journal: folder.path });
    const numbers = () => numbersOf(Dataset.range(20).batch(4).distribute({ service: cluster }));
    {
      using _fails = failJournals();
      const { code, message } = await failureOf(numbers());
      assertMatch(message, /has ended by itself: .*the disk is gone/);
      assertEquals(code, "internal");
    }
    await cluster.restartDispatcher();
    assertEquals(sorted(await numbers()), upTo(20));
  });
}

Deno.test("a dispatcher of a LocalCluster whose journal cannot be opened gives up and dies (thread)", async () => {
  using _soon = giveUpSoon();
  await using folder = await TempFolder.make({});
  const journal = `${folder.path}/journal`;
  const kept = `${folder.path}/kept`;
  await using cluster = await start({ journal });
  const numbers = () => numbersOf(Dataset.range(20).batch(4).distribute({ service: cluster }));
  await cluster.stopDispatcher();
  await Deno.rename(journal, kept);
  await Deno.writeTextFile(journal, "no folder");
  await cluster.restartDispatcher();
  const { code, message } = await until(async () => {
    const failure = await failureOf(numbers());
    // Until this thread learns that the other one gives up.
    return failure.code !== "not_found" && failure;
  });
  assertMatch(message, /has ended by itself: "dispatcher" died 3 times .*journal/);
  assertEquals(code, "internal");
  await Deno.remove(journal);
  await Deno.rename(kept, journal);
  await cluster.restartDispatcher();
  assertEquals(sorted(await numbers()), upTo(20));
});

Deno.test("a dispatcher of a LocalCluster that has died can be restarted, and is read again", async () => {
  using _known = knowWorkers();
  await using cluster = await start();
  const numbers = () => numbersOf(Dataset.range(20).batch(4).distribute({ service: cluster }));
  assertEquals(sorted(await numbers()), upTo(20));
  killDispatcher();
  await assertRejects(numbers, LeatError, "has ended by itself");
  await cluster.restartDispatcher();
  assertEquals(sorted(await numbers()), upTo(20));
});
