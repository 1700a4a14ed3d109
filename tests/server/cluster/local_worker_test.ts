/** A worker of a local cluster: starts, stops and deaths, in any order. */
import { LeatError } from "../../../core/error.ts";
import { LocalCluster } from "../../../mod.ts";
import type { FleetNode } from "../../../server/cluster/fleet.ts";
import { LocalWorker } from "../../../server/cluster/local_worker.ts";
import { assertEquals, assertRejects } from "../../assert.ts";

/** A worker whose nodes start, register and die on command. */
class Bench {
  readonly worker: LocalWorker;
  readonly said: string[] = [];
  opened = Promise.withResolvers<void>();
  known = Promise.withResolvers<void>();
  death = Promise.withResolvers<LeatError>();

  constructor() {
    this.worker = new LocalWorker("w", {
      start: async () => {
        await this.opened.promise;
        return this.#node();
      },
      registered: () => this.known.promise,
      died: ({ message }) => void this.said.push(message),
    });
  }

  /** Its next node starts on command. */
  async run(): Promise<void> {
    this.opened.resolve();
    this.known.resolve();
    await this.worker.start();
  }

  die(): void {
    this.death.resolve(new LeatError("unavailable", "died"));
  }

  #node(): FleetNode {
    return {
      id: { node: "w", incarnation: "1" },
      carrier: "inline",
      died: this.death.promise,
      stop: () => Promise.resolve(void this.said.push("stop")),
      kill: () => Promise.resolve(void this.said.push("kill")),
    };
  }
}

/** Runs everything that can run now. */
const settle = () => new Promise<void>((resolve) => setTimeout(resolve, 0));

Deno.test("LocalWorker that is stopped while it starts stops once it has started", async () => {
  for (const isOpened of [false, true]) {
    const { worker, said, opened, known } = new Bench();
    const started = worker.start();
    if (isOpened) opened.resolve();
    await settle();
    const stopped = worker.stop();
    await settle();
    assertEquals([worker.phase, said], ["starting", []]);
    opened.resolve();
    known.resolve();
    await started;
    await stopped;
    assertEquals([worker.phase, worker.node, said], ["stopped", undefined, ["kill"]]);
  }
});

Deno.test("LocalWorker that dies while it starts fails to start, and can be restarted", async () => {
  const bench = new Bench();
  const { worker, opened, known } = bench;
  const started = assertRejects(
    () => worker.start(),
    LeatError,
    '"w" ended before it was registered',
  );
  opened.resolve();
  await settle();
  bench.die();
  await settle();
  assertEquals(worker.node, undefined);
  known.resolve();
  await started;
  assertEquals([worker.phase, bench.said], ["stopped", []]);
  bench.death = Promise.withResolvers();
  await bench.run();
  assertEquals(worker.phase, "running");
});

Deno.test("LocalWorker that dies reports it, and is stopped", async () => {
  const bench = new Bench();
  await bench.run();
  bench.die();
  await settle();
  assertEquals([bench.worker.phase, bench.worker.node, bench.said], ["stopped", undefined, [
    "died",
  ]]);
  await bench.worker.stop();
  assertEquals(bench.said, ["died"]);
});

Deno.test("LocalWorker waits until its worker has retired, and can kill it meanwhile", async () => {
  const bench = new Bench();
  await bench.run();
  const { worker, said } = bench;
  const end = Promise.withResolvers<void>();
  const retired: string[] = [];
  const retire = () => end.promise;
  const [first, second] = [1, 2].map((who) =>
    worker.stop(retire).then(() => retired.push(`${who}`))
  );
  await settle();
  assertEquals([worker.phase, worker.node, retired], ["stopping", undefined, []]);
  const killed = worker.stop();
  assertEquals(said, ["kill"]);
  end.resolve();
  await Promise.all([first, second, killed]);
  assertEquals([worker.phase, retired.sort()], ["stopped", ["1", "2"]]);
});

Deno.test("a cluster stops a worker that is restarting, and can restart it", async () => {
  await using cluster = await LocalCluster.start({
    workers: 1,
    carrier: "inline",
    runners: "inline",
    logLevel: "off",
  });
  const carrier = () => cluster.fleet.carrierOf(`${cluster.address}-worker-0`);
  for (let turns = 0; turns < 3; turns++) {
    await cluster.stopWorker(0);
    const restarted = cluster.restartWorker(0);
    for (let turn = 0; turn < turns; turn++) await settle();
    const stopped = cluster.stopWorker(0);
    await restarted;
    await stopped;
    assertEquals(carrier(), undefined);
  }
  await cluster.restartWorker(0);
  assertEquals(carrier(), "inline");
});
