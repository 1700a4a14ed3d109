/**
 * After which time without heartbeats the dispatcher drops a worker or a client, in virtual time:
 * an idle one that lives is never dropped.
 */
import type { DatasetIterator } from "../../../data/dataset_iterator.ts";
import type { DispatcherConfig } from "../../../actors/dispatcher/config.ts";
import { dispatcherAt, type DispatcherProtocol } from "../../../actors/dispatcher/protocol.ts";
import type { DispatcherDescription } from "../../../actors/dispatcher/protocol_figures.ts";
import { Dataset } from "../../../data/dataset.ts";
import { Readings, type Timings } from "../../../sim/workloads/lib/reading.ts";
import { bootDispatcher, bootWorker, DISPATCHER_NODE } from "../../../sim/engine/service.ts";
import { assertEquals } from "../../assert.ts";
import { testInVirtualTime, type VirtualTime } from "../../lib/virtual_time.ts";

const ELEMENTS = 40;
const TIMEOUT_MS = 200;

/** A dispatcher, a worker, and a trainer that reads a named job one element at a time. */
function startService(
  { cluster }: VirtualTime,
  readings: Readings,
  config: DispatcherConfig,
  { heartbeatMs, ...timings }: Timings & { readonly heartbeatMs: number },
): { reader: DatasetIterator<number>; describe: () => Promise<DispatcherDescription> } {
  cluster.addNode(DISPATCHER_NODE, bootDispatcher(config));
  cluster.addNode("worker", bootWorker({ heartbeatMs }));
  const trainer = cluster.addNode("trainer", () => {});
  const numbers = (service: string) =>
    Dataset.range(ELEMENTS).distribute({ service, jobName: "j", maxOutstandingRequests: 1 });
  const describe = () =>
    trainer.system.ask<DispatcherProtocol, "describe">(
      dispatcherAt(DISPATCHER_NODE),
      "describe",
      null,
      { timeoutMs: 60_000 },
    );
  return { reader: readings.open(trainer, numbers, timings), describe };
}

testInVirtualTime(
  "a client keeps its position while its training loop requests nothing",
  async (time) => {
    using readings = new Readings();
    const config = { clientTimeoutMs: TIMEOUT_MS, clientGraceMs: TIMEOUT_MS, jobGcTimeoutMs: 0 };
    const timings = { heartbeatMs: 100, refreshMs: 50 };
    const { reader } = startService(time, readings, config, timings);
    await reader.next();
    await time.sleep(100 * TIMEOUT_MS);
    const rest: number[] = [];
    for (let next = await reader.next(); !next.done; next = await reader.next()) {
      rest.push(next.value);
    }
    assertEquals(rest, Array.from({ length: ELEMENTS - 1 }, (_, i) => 1 + i));
  },
);

testInVirtualTime("a client sends heartbeats more often than its timeout", async (time) => {
  using readings = new Readings();
  const config = { workerTimeoutMs: TIMEOUT_MS, clientTimeoutMs: TIMEOUT_MS };
  const timings = { heartbeatMs: 30_000, refreshMs: 30_000 };
  const { reader, describe } = startService(time, readings, config, timings);
  await reader.next();
  for (let look = 0; look < 100; look++) {
    await time.sleep(TIMEOUT_MS / 3);
    const { workers: [worker], jobs: [job] } = await describe();
    const { readers } = job!.iterations[0]!;
    assertEquals([worker!.alive, readers.length], [true, 1]);
  }
  assertEquals((await reader.next()).value, 1);
  await reader.return();
});
