/**
 * A cluster of real processes over loopback: what it delivers after any kill (paper section 3.4).
 */
import { fileURLToPath } from "node:url";
import { Dataset, type Tensor } from "../../mod.ts";
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import { startChild } from "../lib/child.ts";
import { procFile } from "../lib/proc_file.ts";
import { TempFolder } from "../lib/temp_folder.ts";
import { all, soon, SOON_GIVEN_UP, startDispatcher, startWorker, startWorkers } from "./lib.ts";

/** The numbers of a job, in batches of ten; `onBatch` receives how many have come. */
async function read(
  service: string,
  elements: number,
  onBatch: (batches: number) => void | Promise<void> = () => {},
): Promise<number[]> {
  const seen: number[] = [];
  const batches = Dataset.range(elements).map((x) => {
    // Slow enough for a kill in the middle.
    let spins = 0;
    while (spins < 20_000) spins++;
    return spins > 0 ? x : -1;
  }).batch(10).distribute({ service, processingMode: "DYNAMIC", maxOutstandingRequests: 4 });
  let count = 0;
  for await (const batch of batches) {
    seen.push(...(batch as Tensor).data as Float64Array);
    await onBatch(++count);
  }
  return seen.sort((a, b) => a - b);
}

function upTo(n: number): number[] {
  return Array.from({ length: n }, (_, i) => i);
}

// Starting processes takes longer than the cases themselves: cases share clusters.

Deno.test("a cluster of a dispatcher and three worker processes", async (t) => {
  const journal = await Deno.makeTempDir({ prefix: "leat-test-" });
  await using parts = new AsyncDisposableStack();
  parts.defer(() => Deno.remove(journal, { recursive: true }));
  let dispatcher = parts.use(await startDispatcher("--journal", journal));
  const startAgain = async (...args: string[]) => {
    const { port } = new URL(dispatcher.address);
    const all = ["--journal", journal, "--port", port, ...args];
    dispatcher = parts.use(await startDispatcher(...all));
  };
  const workers = await startWorkers(dispatcher, 3);
  parts.use(all(workers));
  const [first, second, third] = workers.map(({ child }) => child);

  await t.step("gives a job exactly once", async () => {
    assertEquals(await soon("the job", read(dispatcher.address, 3_000)), upTo(3_000));
  });

  await t.step("lets a trainer process end by itself after its loop", async () => {
    await using trainer = startChild("tests/cluster/fixture_trainer.ts", {
      args: [dispatcher.address],
    });
    await trainer.line(/read 1000/);
    const { code, signal } = await soon("the trainer's end", trainer.status);
    assertEquals({ code, signal }, { code: 0, signal: null }, trainer.stderr.text);
  });

  await t.step("goes on exactly once from the journal of a dispatcher killed mid-job", async () => {
    const { address, child } = dispatcher;
    const seen = await soon(
      "the job",
      read(address, 4_000, async (batches) => {
        if (batches !== 60) return;
        child.kill("SIGKILL");
        assertEquals((await child.status).signal, "SIGKILL");
        await startAgain();
        assertEquals(dispatcher.address, address);
      }),
    );
    assertEquals(seen, upTo(4_000));
    assert(dispatcher.child !== child);
  });

  await t.step(
    "loses at most what a worker held that SIGKILL ends, and its clients go on",
    async () => {
      dispatcher.child.kill("SIGTERM");
      await soon("the dispatcher's end", dispatcher.child.status);
      await startAgain(...SOON_GIVEN_UP);
      // A worker that this dispatcher has heard: one that it only knows from its journal, and that
      // ends before it has connected again, is lost after a timeout.
      const { child: victim } = parts.use(
        await startWorker(dispatcher.address, "--name", "w4"),
      );
      await dispatcher.child.line(/4 of 4 workers alive/);
      const seen = await soon(
        "the job",
        read(dispatcher.address, 4_000, (batches) => {
          if (batches === 30) victim.kill("SIGKILL");
        }),
      );
      assertEquals((await victim.status).signal, "SIGKILL");
      assertEquals(new Set(seen).size, seen.length, "no element twice");
      assert(seen.length > 30 * 10, `${seen.length} of 4,000 came`);
      await dispatcher.child.line(/3 of 4 workers alive/);
    },
  );

  await t.step("ends at SIGTERM and SIGINT when idle, with status 0", async () => {
    const asked: [typeof dispatcher.child, Deno.Signal][] = [
      [first!, "SIGTERM"],
      [second!, "SIGTERM"],
      [third!, "SIGINT"],
      [dispatcher.child, "SIGTERM"],
    ];
    for (const [child, signal] of asked) {
      child.kill(signal);
      const { code, signal: end } = await soon("its end", child.status);
      assertEquals({ code, end }, { code: 0, end: null }, child.stderr.text);
    }
  });
});

Deno.test("worker processes drain on request", async (t) => {
  // Their absence would only show after the job's timeout.
  await using dispatcher = await startDispatcher();
  const workers = await startWorkers(dispatcher, 2, "--drain-ms", "600000");
  await using _workers = all(workers);
  const [leaving] = workers.map(({ child }) => child);

  await t.step("hand over all they hold mid-job, and say good-bye", async () => {
    const seen = await soon(
      "the job",
      read(dispatcher.address, 2_000, (batches) => {
        if (batches === 30) leaving!.kill("SIGTERM");
      }),
    );
    assertEquals(seen, upTo(2_000));
    assertEquals((await soon("its end", leaving!.status)).code, 0);
    await dispatcher.child.line(/1 of 2 workers alive/);
  });
});

Deno.test("the cluster program runs its job, keeps its guarantee, and leaves no process behind", async () => {
  const { child, pids } = await startCluster(2, "--elements", "5000", "--work", "10");
  await using _child = child;
  await child.line(/exactly once: kept/);
  assertEquals((await soon("its end", child.status)).code, 0);
  for (const pid of pids) await gone(pid);
});

Deno.test("the cluster program runs its job in a folder with the journal of another dispatcher", async () => {
  await using folder = await TempFolder.make({ "journal/dispatcher.sqlite": "" });
  await using child = startChild(fileURLToPath(import.meta.resolve("../../cli/cluster.ts")), {
    args: ["--workers", "1", "--elements", "100", "--work", "0"],
    flags: ["-P=cluster"],
    cwd: folder.path,
  });
  assertEquals((await soon("its end", child.status)).code, 0, child.stderr.text);
});

Deno.test("the cluster program keeps its guarantee with a worker killed, and reports what was lost", async () => {
  const { child } = await startCluster(2, "--elements", "20000", "--kill-after", "4000");
  await using _child = child;
  await child.line(/ended: SIGKILL/);
  await child.line(/at most once: kept/);
  assertEquals((await soon("its end", child.status)).code, 0);
});

Deno.test("the cluster program does not wait forever for workers that nothing restarts", async () => {
  const args = ["--workers", "1", "--kill-after", "4000"];
  await using refused = startChild("cli/cluster.ts", { args, flags: ["-P=cluster"] });
  assertEquals((await soon("its refusal", refused.status)).code, 2);
  assertStringIncludes(refused.stderr.text, "give at least --workers 2");
  const { child, pids: [dispatcher, worker] } = await startCluster(1, "--elements", "100000000");
  await using _child = child;
  // With another program: tests may not send signals to processes that they have not started.
  const kill = "import os, signal, sys; os.kill(int(sys.argv[1]), signal.SIGKILL)";
  await new Deno.Command("python3", { args: ["-c", kill, `${worker}`] }).output();
  assertEquals((await soon("its end", child.status)).code, 1);
  assertStringIncludes(child.stderr.text, "No worker is left for the job (worker-1: SIGKILL)");
  await gone(dispatcher!);
});

for (const signal of ["SIGINT", "SIGKILL"] as const) {
  Deno.test(`no process is left behind when the cluster program gets ${signal}`, async () => {
    const { child, pids } = await startCluster(1, "--elements", "100000000");
    await using _child = child;
    child.kill(signal);
    const { code } = await soon("its end", child.status);
    if (signal === "SIGINT") assertEquals(code, 130);
    for (const pid of pids) await gone(pid);
  });
}

/** Starts the cluster program; resolves once its job runs, with its processes. */
async function startCluster(workers: number, ...given: string[]) {
  const args = ["--workers", `${workers}`, ...given];
  const child = startChild("cli/cluster.ts", { args, flags: ["-P=cluster"] });
  const pids: number[] = [];
  for (let i = 0; i < 1 + workers; i++) {
    const [, pid] = await soon("a process", child.stderr.match(/\(process (\d+)\)/)) ?? [];
    if (pid === undefined) throw new Error(`The program has ended:\n${child.stderr.text}`);
    pids.push(Number(pid));
  }
  return { child, pids };
}

/** Resolves when there is no such process, or only its zombie. */
async function gone(pid: number): Promise<void> {
  await soon(
    `the end of process ${pid}`,
    (async () => {
      while (await isRunning(pid)) await new Promise((resolve) => setTimeout(resolve, 20));
    })(),
  );
}

/** Checked without a signal, which may only be sent to one's own children. */
async function isRunning(pid: number): Promise<boolean> {
  const stat = await procFile(pid, "stat");
  return stat !== "" && !/\) Z /.test(stat);
}
