/**
 * Programs of a cluster that stop: one that gives up by itself, and some on request while others do
 * not answer.
 */
import { Dataset, type DistributeOptions, type Tensor } from "../../mod.ts";
import { assertEquals, assertMatch } from "../assert.ts";
import { startChild } from "../lib/child.ts";
import { soon, startDispatcher, startWorker, startWorkers } from "./lib.ts";

/** Longer than any test waits. */
const NEVER_MS = "600000";
/**
 * Ten times the documented limit, for a busy machine. A program that waits for an answer takes
 * longer.
 */
const STOP_PATIENCE_MS = 20_000;

/** A thread that waits like this cannot be ended, and takes no CPU from other tests. */
async function wait(): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 1));
  // Not before: a thread that is asked to end while it waits for a timer ends.
  console.log("called");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  return 0;
}

/** Calls a function whose thread cannot be ended, repeatedly: a job fails after some. */
async function callStuck(job: DistributeOptions, signal: AbortSignal): Promise<void> {
  const over = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  while (!signal.aborted) {
    await using iterator = Dataset.range(1).map(wait).distribute(job).iterator();
    await Promise.race([iterator.next().catch(() => {}), over]);
  }
}

Deno.test("a worker with --runaway-threads-max threads that cannot be ended drains, and exits with status 1", async () => {
  await using dispatcher = await startDispatcher("--worker-timeout-ms", NEVER_MS);
  // Far longer than an endable thread takes to end: on a busy machine that is seconds.
  const [worker] = await startWorkers(dispatcher, 1, ...[
    ...["--no-sandbox", "--runaway-threads-max", "2", "--runaway-after-ms", "8000"],
    ...["--drain-ms", NEVER_MS],
  ]);
  await using _worker = worker!;
  const { address } = dispatcher;
  const { stderr, status } = worker!.child;
  const job = { service: address, processingMode: "DYNAMIC" } as const;
  await using good = Dataset.range(1_000).batch(10).distribute(job).iterator();
  const seen: number[] = [];
  const take = async () => {
    const { done, value } = await good.next();
    if (!done) seen.push(...(value as Tensor).data as Float64Array);
    return done !== true;
  };
  await soon("a batch", take());
  const stuck = [1, 2].map(() => {
    const iterator = Dataset.range(1).map(wait).distribute(job).iterator();
    return { iterator, never: iterator.next().catch(() => {}) };
  });
  for (const _call of stuck) await soon("the calls", worker!.child.line(/called/));
  for (const { iterator, never } of stuck) {
    // A thread is asked to end once its task has no reader.
    await iterator.return();
    await never;
  }
  for (const count of [1, 2]) {
    const said = new RegExp(`cannot end that thread: .*\\(${count} such threads now\\)`);
    await soon(`thread ${count}`, stderr.match(said));
  }
  await using _another = await startWorker(address, "--name", "w2");
  await soon(
    "all batches",
    (async () => {
      while (await take());
    })(),
  );
  assertEquals(seen.sort((a, b) => a - b), Array.from({ length: 1_000 }, (_, i) => i));
  assertEquals((await soon("its end", status)).code, 1);
  assertMatch(stderr.text, /Worker "w1" gives up: 2 of its threads were asked to end and have not/);
});

Deno.test("a worker and a dispatcher end with status 0 on request, although no other node answers", async (t) => {
  await using dispatcher = await startDispatcher("--worker-timeout-ms", NEVER_MS);
  const { address, child: dispatching } = dispatcher;
  const [worker] = await startWorkers(dispatcher, 1, "--function-timeout-ms", NEVER_MS);
  await using _worker = worker!;
  const { child: working } = worker!;
  await using trainer = startChild("tests/cluster/fixture_trainer.ts", {
    args: [address, "for ever"],
  });
  await soon("elements", trainer.line(/read \d+/));
  const enough = new AbortController();
  const stuck = callStuck({ service: address }, enough.signal);
  await soon("the call", working.stderr.match(/called/));

  await t.step(
    "a worker whose dispatcher and client are paused, and whose function is stuck",
    async () => {
      for (const child of [dispatching, trainer]) child.kill("SIGSTOP");
      working.kill("SIGTERM");
      const { code } = await soon("its end", working.status, STOP_PATIENCE_MS);
      assertEquals(code, 0, working.stderr.text);
      dispatching.kill("SIGCONT");
    },
  );

  await t.step(
    "a dispatcher whose client is paused, and that a stranger has begun to ask",
    async () => {
      const { hostname, port } = new URL(address);
      using stranger = await Deno.connect({ hostname, port: Number(port) });
      await stranger.write(new TextEncoder().encode("GET /state HTTP/1.1\r\n"));
      dispatching.kill("SIGINT");
      const { code } = await soon("its end", dispatching.status, STOP_PATIENCE_MS);
      assertEquals(code, 0, dispatching.stderr.text);
    },
  );

  trainer.kill("SIGKILL");
  enough.abort();
  await soon("the end of the call", stuck);
});
