/** Beginning a save on a runner. */
import { LISTER_DIED } from "../../../../actors/worker/protocol.ts";
import type {
  RunnerCaller,
  RunnerFactory,
  RunnerOutcome,
} from "../../../../actors/worker/runner/runner.ts";
import { SaveBeginnings } from "../../../../actors/worker/tasks/begin_save.ts";
import { LeatError } from "../../../../core/error.ts";
import { DenoWorld } from "../../../../platform/deno_world.ts";
import { assertEquals } from "../../../assert.ts";
import { turn } from "../../../data/lib/collect.ts";
import { testInVirtualTime } from "../../../lib/virtual_time.ts";

const REQUEST = {
  dataset: { datasetId: "1", fingerprint: "f", cardinality: 1, graph: new Uint8Array(1) },
  save: { folder: "/saved", overwrite: false, fingerprint: "f" },
  seed: "0",
  owner: "team",
  saveName: "job",
};

const world = new DenoWorld({ logLevel: "off" });

/** Runners whose steps are what `next` returns. */
function runnersOf(
  next: (caller: RunnerCaller | undefined) => Promise<RunnerOutcome>,
  dispose = () => {},
): RunnerFactory {
  return {
    start: (_settings, _splits, caller) => ({
      next: () => next(caller),
      bytesRead: 0,
      dispose,
    }),
    listSplits: () => Promise.reject(new Error("nothing is listed")),
    close: () => Promise.resolve(),
  };
}

Deno.test("SaveBeginnings reports the death of its runner so that it is counted, and no other failure", async () => {
  const codes: unknown[] = [];
  for (const details of [{ reason: "runner_died" }, {}]) {
    const error = new LeatError("unavailable", "The runner is gone", { details });
    const saves = new SaveBeginnings(world, runnersOf(() => Promise.reject(error)));
    const { code, details: given } = await saves.begin(REQUEST, Infinity).catch(
      LeatError.from,
    ) as LeatError;
    codes.push([code, given?.["reason"]]);
  }
  assertEquals(codes, [["aborted", LISTER_DIED], ["unavailable", undefined]]);
});

Deno.test("SaveBeginnings begins a save of another identity at once, however many one identity begins", async () => {
  const running: PromiseWithResolvers<RunnerOutcome>[] = [];
  const owners: (string | undefined)[] = [];
  const saves = new SaveBeginnings(
    world,
    runnersOf((caller) => {
      owners.push(caller?.owner);
      const outcome = Promise.withResolvers<RunnerOutcome>();
      running.push(outcome);
      return outcome.promise;
    }),
  );
  const begin = (owner: string, saveName: string, deadlineMs = Infinity) =>
    saves.begin({ ...REQUEST, owner, saveName }, deadlineMs).catch((error) => error.code);
  const begun = [1, 2, 3, 4].map((number) => begin("many", `many/${number}`));
  const late = begin("many", "late", 0);
  begun.push(begin("few", "few/1"));
  await turn();
  assertEquals(owners, ["many", "many", "few"]);
  for (let ended = 0; ended < begun.length; ended++) {
    running[ended]!.resolve({ kind: "end" });
    await turn();
  }
  assertEquals(owners, ["many", "many", "few", "many", "many"]);
  assertEquals(await Promise.all(begun), Array(5).fill("unavailable"));
  assertEquals(await late, "deadline_exceeded");
});

testInVirtualTime(
  "SaveBeginnings gives up beginnings that hang at the deadline of their last request, and begins others",
  async (time) => {
    const owners: (string | undefined)[] = [];
    let disposed = 0;
    const runners = runnersOf((caller) => {
      owners.push(caller?.owner);
      return caller?.owner === "last"
        ? Promise.resolve({ kind: "end" })
        : Promise.withResolvers<RunnerOutcome>().promise;
    }, () => disposed++);
    const clock = time.world("worker");
    const saves = new SaveBeginnings(clock, runners);
    const begin = (owner: string, afterMs: number) =>
      saves.begin({ ...REQUEST, owner, saveName: owner }, clock.nowMs() + afterMs)
        .catch(({ code }) => `${owner} ${code} ${time.nowMs}`);
    const hung = ["a", "b", "c"].map((owner) => begin(owner, 100));
    const last = begin("last", 1_000);
    await time.sleep(50);
    const again = begin("c", 100);
    const ends = await Promise.all([...hung, again, last]);
    assertEquals(ends, [
      "a deadline_exceeded 100",
      "b deadline_exceeded 100",
      "c deadline_exceeded 150",
      "c deadline_exceeded 150",
      "last unavailable 100",
    ]);
    assertEquals([owners, disposed], [["a", "b", "c", "last"], 4]);
  },
);
