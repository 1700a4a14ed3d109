/** The placement of the service's actors is only configuration. */
import { Dataset, LocalCluster, type LocalClusterOptions } from "../../../mod.ts";
import { assertEquals } from "../../assert.ts";
import { CARRIERS } from "../lib/carriers.ts";

const KINDS = ["dispatcher", "worker", "cache", "reads"] as const;

/** A few elements through a cache and a few through a scheduler. */
async function useBoth(service: LocalCluster): Promise<void> {
  const endless = Dataset.range(100).repeat();
  const shared = { service, jobName: "shared", sharing: { trainerId: "t" } };
  const coordinated = { service, jobName: "rounds", consumerIndex: 0, numConsumers: 1 };
  for (const options of [shared, coordinated]) {
    await using iterator = endless.distribute(options).iterator();
    assertEquals([(await iterator.next()).value, (await iterator.next()).value], [0, 1]);
    await checkPlacement(service);
  }
}

let expected: Partial<Record<string, string>> = {};
const found = new Set<string>();

/** Finds each actor by asking every node for its actors. */
async function checkPlacement(cluster: LocalCluster): Promise<void> {
  for (const { ref, kind, mailboxLength } of await cluster.actors()) {
    const carrier = expected[kind];
    if (carrier === undefined) continue;
    assertEquals(cluster.fleet.carrierOf(ref.node), carrier, `${kind} at ${ref.node}${ref.path}`);
    assertEquals(mailboxLength >= 0, true);
    found.add(kind);
  }
}

for (const kind of KINDS) {
  for (const carrier of CARRIERS) {
    Deno.test(`${kind} is placed ${carrier} by configuration alone`, async () => {
      const others = carrier === "inline" ? "websocket" : "inline";
      const options: LocalClusterOptions = {
        workers: 1,
        carrier: others,
        placement: { [kind]: carrier },
        runners: "inline",
        heartbeatMs: 50,
        clientRefreshMs: 20,
        skipAfterMs: 10_000,
        logLevel: "off",
      };
      expected = { dispatcher: others, worker: others, [kind]: carrier };
      found.clear();
      await using cluster = await LocalCluster.start(options);
      await useBoth(cluster);
      assertEquals(found.has(kind), true, `no actor of kind ${kind} was found`);
    });
  }
}
