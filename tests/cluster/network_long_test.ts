/**
 * A cluster on hosts with networks of their own, between which packets are lost and cables are
 * pulled: the guarantees still hold.
 */
import { Dataset, type Tensor } from "../../mod.ts";
import { assert, assertEquals } from "../assert.ts";
import { type Child, startChild } from "../lib/child.ts";
import { all, type Part, soon, startDispatcherIn, startWorkerIn } from "./lib.ts";
import { HOSTS, Network, whyNoNetwork } from "./lib_network.ts";

const ELEMENTS = 2_000;
/**
 * Before these batches the trainer waits: the cable is pulled at the first, and plugged in at the
 * second.
 */
const HOLDS = ["40", "60"];

const why = await whyNoNetwork();
if (why !== undefined) {
  console.log(
    `tests/cluster/network_long_test.ts is skipped, since there are no namespaces: ${why}`,
  );
}

interface Site extends AsyncDisposable {
  readonly network: Network;
  readonly dispatcher: Part;
  readonly trainer: Child;
}

/** Dispatcher, two workers and a trainer that has stopped at the first hold. */
async function startSite(mode: string, ...dispatcherArgs: string[]): Promise<Site> {
  await using stack = new AsyncDisposableStack();
  const network = stack.use(await Network.start());
  const dispatcher = stack.use(
    await startDispatcherIn(network.namespaceOf("dispatcher"), ...[
      ...["--host", HOSTS.dispatcher, "--insecure", "--window-splits", "16"],
      ...dispatcherArgs,
    ]),
  );
  const names = ["worker1", "worker2"] as const;
  const workers = await Promise.all(
    names.map((name) =>
      startWorkerIn(network.namespaceOf(name), dispatcher.address, "--name", name, "--insecure")
    ),
  );
  stack.use(all(workers));
  await dispatcher.child.line(/2 of 2 workers alive/);
  const trainer = stack.use(startChild("tests/cluster/fixture_network_reader.ts", {
    args: [dispatcher.address, mode, `${ELEMENTS}`, ...HOLDS],
    namespace: network.namespaceOf("trainer"),
  }));
  await trainer.line(/^at 40$/);
  const kept = stack.move();
  return { network, dispatcher, trainer, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

/** All numbers that the trainer received, once it has ended. */
async function numbersOf(trainer: Child): Promise<number[]> {
  const [, numbers = ""] = await soon("the job", trainer.line(/^numbers (.*)$/));
  return numbers.split(" ").map(Number);
}

Deno.test({
  name: "over a network that loses packets and is cut for a while DYNAMIC delivers exactly once",
  ignore: why !== undefined,
  fn: async () => {
    await using site = await startSite("DYNAMIC");
    const { network, trainer } = site;
    await network.cut("worker1");
    await trainer.write("go on\n");
    // The other worker continues alone.
    await trainer.line(/^at 60$/);
    await network.join("worker1");
    await trainer.write("go on\n");
    const numbers = await numbersOf(trainer);
    assertEquals(numbers.sort((a, b) => a - b), Array.from({ length: ELEMENTS }, (_, i) => i));
    assert(await network.lost() > 0, `no packet was lost (${network.impairment})`);
  },
});

Deno.test({
  name:
    "over a network that loses packets and cuts a worker off DETERMINISTIC gives the same stream",
  ignore: why !== undefined,
  fn: async () => {
    // No packet closes the connection of a worker that is cut off. Nothing is lost if another one
    // times out, too.
    await using site = await startSite("DETERMINISTIC", "--worker-timeout-ms", "1500");
    const { network, dispatcher, trainer } = site;
    await network.cut("worker1");
    await dispatcher.child.line(/1 of 2 workers alive/);
    await trainer.write("go on\n");
    await trainer.line(/^at 60$/);
    await network.join("worker1");
    await trainer.write("go on\n");
    const wanted: number[] = [];
    for await (const batch of Dataset.range(ELEMENTS).batch(10)) {
      wanted.push(...(batch as Tensor).data as Float64Array);
    }
    assertEquals(await numbersOf(trainer), wanted);
    assert(await network.lost() > 0, `no packet was lost (${network.impairment})`);
  },
});
