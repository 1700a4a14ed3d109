/** What a client says of a task that it cannot read. */
import { TaskFetcher } from "../../../../actors/client/readers/task_fetcher.ts";
import type { ReaderDependencies } from "../../../../actors/client/readers/reader.ts";
import { UnreadTasks } from "../../../../actors/client/unreached.ts";
import { dispatcherAt, type JobParameters } from "../../../../actors/dispatcher/protocol.ts";
import { ActorSystem } from "../../../../actors/runtime/system.ts";
import type { ElementSourceProtocol } from "../../../../actors/worker/protocol.ts";
import { LeatError } from "../../../../core/error.ts";
import { DenoWorld } from "../../../../platform/deno_world.ts";
import { inlinePair } from "../../../../transport/inline.ts";
import { assertEquals, assertMatch } from "../../../assert.ts";
import { until } from "../../../lib/until.ts";

/** The warnings of a client whose worker answers once, after which it cannot be dialled. */
async function warningsAfter(
  failure: LeatError,
  parameters: Partial<JobParameters> = {},
): Promise<string[]> {
  const lines: string[] = [];
  const world = new DenoWorld({ logLevel: "warn", print: (_, line) => lines.push(line) });
  await using worker = new ActorSystem({ node: "worker", world });
  let dials = 0;
  await using client = new ActorSystem({
    ...{ node: "client", world },
    connector: {
      connect(_node, local) {
        if (++dials > 1) return Promise.reject(failure);
        const [there, here] = inlinePair(world, worker.id, world, local);
        worker.attach(there);
        return Promise.resolve(here);
      },
    },
  });
  const source = worker.spawn<ElementSourceProtocol>({
    name: "task",
    create: () => ({ handlers: { getElement: () => ({ kind: "end" }) } as never }),
  });
  const fetcher = Promise.withResolvers<TaskFetcher>();
  client.spawn({
    name: "reader",
    create(context) {
      const options = { dispatcher: dispatcherAt("dispatcher"), parameters };
      const deps = { context, options, unread: new UnreadTasks() } as unknown as ReaderDependencies;
      const task = { taskId: 1, worker: "w", source };
      fetcher.resolve(new TaskFetcher(deps, 1, task, { faultOf() {}, onUnreachable() {} }));
      return { handlers: {} };
    },
  });
  const reader = await fetcher.promise;
  assertEquals((await reader.fetch()).kind, "end");
  await worker.stop();
  const missing = reader.fetch().catch(() => {});
  await until(() => dials > 3);
  reader.leave();
  await missing;
  return lines;
}

const WHY = new LeatError("unauthenticated", "its token is missing or wrong");
const REFUSAL = new LeatError("unavailable", WHY.message, { cause: WHY });

Deno.test("a client warns of a worker that has begun to refuse it, and not of one that has ended", async () => {
  const ended = new LeatError("unavailable", "Cannot reach worker");
  assertEquals(await warningsAfter(ended), []);
  const [warning, ...others] = await warningsAfter(REFUSAL);
  assertMatch(warning!, /Cannot read from worker "w" .*: its token is missing or wrong/);
  assertEquals(others, []);
});

Deno.test("a client's warning of a worker that it cannot read says what its mode does meanwhile", async () => {
  for (
    const [parameters, meanwhile] of [
      [{ processingMode: "DYNAMIC" }, /The other workers are read meanwhile; .* is waited for$/],
      [{ processingMode: "DETERMINISTIC", numConsumers: 2 }, /The stream waits for the splits .*$/],
      [{ processingMode: "OFF", numConsumers: 2 }, /Reading continues without it$/],
    ] as const
  ) assertMatch((await warningsAfter(REFUSAL, parameters))[0]!, meanwhile);
});
