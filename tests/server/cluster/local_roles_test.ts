/** The roles of a local cluster's workers: whose options count. */
import type { LocalClusterOptions, LocalWorkerOptions } from "../../../mod.ts";
import type { WorkerRole } from "../../../server/roles.ts";
import { workerRole } from "../../../server/cluster/local_roles.ts";
import { defaultWindowBytes } from "../../../server/window_memory.ts";
import { assert, assertEquals } from "../../assert.ts";

/** What an untyped program gives for an option that it leaves out. */
const ABSENT = undefined as never;

function roleOf(
  cluster: LocalClusterOptions,
  own: LocalWorkerOptions = {},
  workers = 1,
): WorkerRole {
  return workerRole(cluster, own, { name: "w", workers, dispatcher: "d", proxies: {} });
}

function windowOf(cluster: LocalClusterOptions, workers: number): number | undefined {
  return roleOf(cluster, {}, workers).config.windowBytesMax;
}

Deno.test("workerRole keeps the cluster's options where the worker's are undefined", () => {
  const cluster = { confine: { dataRoots: ["/tmp"] }, storageLatencyMs: 3 };
  const { sandbox, storageLatencyMs } = roleOf(cluster, {
    confine: ABSENT,
    storageLatencyMs: ABSENT,
  });
  assert(sandbox !== undefined, "the worker is not confined");
  assertEquals(storageLatencyMs, 3);
  assertEquals(roleOf(cluster, { confine: false }).sandbox, undefined);
});

Deno.test("workerRole keeps the default of windowBytesMax where it is undefined", () => {
  assertEquals(windowOf({ workers: 2, windowBytesMax: ABSENT }, 1), defaultWindowBytes(2));
  assertEquals(windowOf({ workers: 2, windowBytesMax: 5 }, 1), 5);
});

Deno.test("workerRole divides the default of windowBytesMax among added workers, too", () => {
  for (const workers of [0, 1, 4, { min: 0, max: 3 }]) {
    assertEquals(windowOf({ workers }, 4), defaultWindowBytes(4), JSON.stringify(workers));
  }
  assertEquals(windowOf({ workers: { min: 1, max: 8 } }, 1), defaultWindowBytes(8));
});
