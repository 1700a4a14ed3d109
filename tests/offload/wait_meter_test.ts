/** How long training is found to wait, and for which side. */
import type { StepWindow } from "../../offload/adapt.ts";
import type { Side } from "../../offload/conditional/items.ts";
import { EpochMeter } from "../../offload/epoch_meter.ts";
import { WaitMeter } from "../../offload/conditional/wait_meter.ts";
import { assertEquals } from "../assert.ts";

/** A side that could give more since a time. */
function side(aheadSinceMs?: number): Side {
  const never = () => Promise.reject(new Error("not asked"));
  return { aheadSinceMs, isReady: false, next: never, dispose: () => {} };
}

Deno.test("WaitMeter counts a wait for a side only while the other could give more", async () => {
  let nowMs = 0;
  const meter = new WaitMeter(() => nowMs);
  const wait = async (asked: "local" | "remote", other: Side | undefined, ms: number) => {
    const pending = Promise.withResolvers<void>();
    const waiting = meter.during(asked, pending.promise, other);
    nowMs += ms;
    pending.resolve();
    await waiting;
  };
  await wait("local", side(-5), 10);
  await wait("remote", side(), 20);
  // From 30 to 70; the other side is ahead from 60 on.
  await wait("remote", side(60), 40);
  await wait("local", undefined, 100);
  for (let i = 0; i < 24; i++) assertEquals(meter.count(), undefined);
  nowMs += 130;
  const waitMs = { local: 10, remote: 10, both: 150 };
  assertEquals(meter.count(), { elements: 25, elapsedMs: 300, waitMs });

  // A wait for what gives no element, such as the end of a split, is no pause.
  for (let i = 0; i < 24; i++) assertEquals(meter.count(), undefined);
  await wait("local", undefined, 600);
  await wait("local", undefined, 100);
  assertEquals(meter.count()!.waitMs.both, 700);

  // While training is evaluated, say, it says nothing of either side.
  for (let i = 0; i < 24; i++) assertEquals(meter.count(), undefined);
  nowMs += 5_000;
  await wait("local", undefined, 100);
  assertEquals(meter.count(), undefined);
});

Deno.test("WaitMeter counts an element that the other side gave as a wait of a mean step", () => {
  let nowMs = 0;
  const meter = new WaitMeter(() => nowMs);
  for (let i = 0; i < 5; i++) meter.avoided("local");
  meter.avoided("remote");
  for (let i = 0; i < 24; i++) meter.count();
  nowMs = 250;
  assertEquals(meter.count()!.waitMs, { local: 50, remote: 10, both: 0 });
  for (let i = 0; i < 24; i++) meter.count();
  nowMs = 500;
  assertEquals(meter.count()!.waitMs, { local: 0, remote: 0, both: 0 });
});

Deno.test("EpochMeter leaves out what training did beside its steps, but no long step", () => {
  let nowMs = 0;
  const meter = new EpochMeter(() => nowMs);
  const train = (ms: number) => {
    meter.during(() => (nowMs += 5, [1]));
    meter.count([1]);
    nowMs += ms;
  };
  for (let i = 0; i < 10; i++) train(40);
  // An evaluation follows the last step.
  train(40 + 60_000);
  train(40);
  const { batches, elapsedMs, waitMs } = meter.read();
  assertEquals([batches, elapsedMs, waitMs], [12, 11 * 40 + 12 * 5, 60]);

  // The same at the beginning of the next period.
  const next = meter.next();
  nowMs += 60_000;
  next.during(() => (nowMs += 5, [1]));
  assertEquals(next.read().elapsedMs, 5);

  // A first step that compiles the model says nothing of the others, and does not count.
  const compiling = new EpochMeter(() => nowMs);
  for (const ms of [30_000, 50, 50, 5_000, 50]) {
    compiling.during(() => [1]);
    nowMs += ms;
  }
  compiling.during(() => [1]);
  assertEquals(compiling.read().elapsedMs, 150);
  assertEquals(compiling.next().read().elapsedMs, 0);

  const slow = new EpochMeter(() => nowMs);
  for (const ms of [2_000, 3_000, 9_000, 2_000]) {
    slow.during(() => [1]);
    nowMs += ms;
  }
  assertEquals(slow.read().elapsedMs, 16_000);
});

Deno.test("WaitMeter says nothing of a window in which training used up what workers had prepared", async () => {
  const windowOf = async (bufferedBytes: readonly number[], waits: "local" | "remote") => {
    let nowMs = 0;
    const meter = new WaitMeter(() => nowMs);
    const other = side(0);
    let last: StepWindow | undefined;
    for (const [number, buffered] of bufferedBytes.entries()) {
      last = undefined;
      for (let i = 0; i < 25; i++) {
        nowMs += 10;
        await meter.during(waits, Promise.resolve().then(() => void (nowMs += 10)), other);
        const supply = { takenBytes: 100 * (25 * number + i + 1), bufferedBytes: buffered };
        last = meter.count(() => supply) ?? last;
      }
    }
    return last;
  };
  assertEquals((await windowOf([5_000, 5_000], "local"))?.waitMs.local, 250, "as much came");
  assertEquals(await windowOf([5_000, 4_000], "local"), undefined, "less came");
  assertEquals(
    (await windowOf([5_000, 4_000], "remote"))?.waitMs.remote,
    250,
    "less is waited for",
  );
});
