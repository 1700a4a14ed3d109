/** Which nodes crash in a run, how often, and whether together. */
import { SimCluster } from "../../../sim/engine/cluster.ts";
import { Crashes, drawCrashes, type Role, ROLES } from "../../../sim/faults/crashes.ts";
import { type FaultOptions, NO_FAULTS } from "../../../sim/faults/options.ts";
import { SimRandom } from "../../../sim/engine/random.ts";
import { assert, assertEquals } from "../../assert.ts";

const NODES = {
  dispatcher: ["dispatcher"],
  worker: ["worker-1", "worker-2"],
  client: ["client"],
} as const;

/** Carries out all crashes; returns when, and the names of the nodes that are up afterwards. */
async function crash(seed: bigint, roles: readonly Role[], faults: Partial<FaultOptions>) {
  const cluster = new SimCluster({ seed, faults: { ...NO_FAULTS, ...faults } });
  const times: number[] = [];
  for (const name of Object.values(NODES).flat()) cluster.addNode(name, () => {});
  const onCrash = () => times.push(cluster.scheduler.nowUs);
  const crashes = new Crashes(cluster, { nodes: NODES, roles, onCrash });
  for (let count = 0; count <= 12; count++) {
    cluster.after(100 * count, "delivered", () => crashes.delivered(count));
  }
  await cluster.run({ until: () => crashes.over, timeMaxMs: 60_000 });
  assert(cluster.nodes.every(({ isUp }) => isUp), "some node stayed down");
  return { times, cluster, names: cluster.nodes.map(({ name }) => name) };
}

Deno.test("drawCrashes makes each role crash in some runs, mostly once, and leaves some runs without crashes", () => {
  const drawn = Array.from({ length: 200 }, (_, i) => drawCrashes(new SimRandom(BigInt(i))));
  for (const role of ROLES) {
    const times = drawn.map((roles) => roles.filter((each) => each === role).length);
    assertEquals([...new Set(times)].sort(), [0, 1, 2, 4]);
    assert(times.filter((count) => count === 0).length > 50);
  }
  assert(drawn.some((roles) => roles.length === 0));
});

Deno.test("a role that is listed several times crashes that many times", async () => {
  const roles: Role[] = ["dispatcher", "dispatcher", "dispatcher", "worker", "worker"];
  const { times, cluster } = await crash(1n, roles, {});
  assertEquals(times.length, 5);
  assert(new Set(times).size > 1);
  assertEquals(cluster.counters.get("dispatcher_crashed"), 3);
  assertEquals(cluster.counters.get("worker_crashed"), 2);
});

Deno.test("nodes of one machine crash together", async () => {
  for (let seed = 1n; seed <= 10n; seed++) {
    const { times, cluster } = await crash(seed, ROLES, { crashTogetherProbability: 1 });
    assertEquals(times.length, 3);
    assertEquals(new Set(times).size, 1, `SEED=${seed}: ${times}`);
    assertEquals(cluster.counters.get("crashed_together"), 3);
  }
});

Deno.test("a worker that moves restarts under another name each time", async () => {
  for (let seed = 1n; seed <= 10n; seed++) {
    const roles = Array<Role>(6).fill("worker");
    const { names, cluster } = await crash(seed, roles, { moveProbability: 1 });
    assert(cluster.counters.get("node_moved") > 0);
    assertEquals(names.length, 4);
    assert(names.some((name) => name.includes("-moved-")), `${names}`);
    for (const name of NODES.worker) assert(names.includes(cluster.node(name).name));
  }
});
