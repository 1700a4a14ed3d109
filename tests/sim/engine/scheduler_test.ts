/** Virtual time: order, the barrier between events, and the ends of runs that do not finish. */
import { Scheduler } from "../../../sim/engine/scheduler.ts";
import { LeatError } from "../../../core/error.ts";
import { assert, assertEquals, assertMatch, assertRejects } from "../../assert.ts";

Deno.test("Scheduler runs events by time, then in the order of scheduling, at their own time", async () => {
  const scheduler = new Scheduler();
  const ran: string[] = [];
  const note = (name: string) => () => ran.push(`${name}@${scheduler.nowUs}`);
  scheduler.at(20, "", note("c"));
  scheduler.at(10, "", () => {
    note("a")();
    scheduler.at(15, "", note("inserted"));
    scheduler.at(5, "", note("overdue"));
  });
  scheduler.at(10, "", note("b"));
  await scheduler.run({ until: () => ran.length === 5, timeMaxMs: 1 });
  assertEquals(ran, ["a@10", "b@10", "overdue@10", "inserted@15", "c@20"]);
});

Deno.test("Scheduler keeps the order of many events, also when most were cancelled", async () => {
  const scheduler = new Scheduler();
  const ran: number[] = [];
  const times = Array.from({ length: 2_000 }, (_, i) => (i * 7_919) % 1_999);
  const events = times.map((time) => scheduler.at(time, "", () => ran.push(time)));
  events.forEach((event, i) => i % 5 > 0 && scheduler.cancel(event));
  assertEquals(scheduler.pending, 400);
  await scheduler.run({ until: () => scheduler.pending === 0, timeMaxMs: 10 });
  assertEquals(ran, times.filter((_, i) => i % 5 === 0).sort((a, b) => a - b));
});

Deno.test("Scheduler completes all microtasks of an event before the next event", async () => {
  const scheduler = new Scheduler();
  const ran: string[] = [];
  scheduler.at(1, "", async () => {
    for (let turn = 0; turn < 1_000; turn++) await Promise.resolve();
    ran.push("microtasks");
  });
  scheduler.at(1, "", () => ran.push("next event"));
  await scheduler.run({ until: () => scheduler.pending === 0, timeMaxMs: 1 });
  assertEquals(ran, ["microtasks", "next event"]);
});

for (const eventsPerTurn of [1, 128]) {
  Deno.test(`Scheduler.run reports an unhandled rejection within ${eventsPerTurn} events, and before its end`, async () => {
    const scheduler = new Scheduler();
    const told: number[] = [];
    let ran = 0;
    let waitedMax = 0;
    const onUncaught = (event: PromiseRejectionEvent) => {
      event.preventDefault();
      told.push(event.reason);
      waitedMax = Math.max(waitedMax, ran - event.reason);
    };
    globalThis.addEventListener("unhandledrejection", onUncaught);
    try {
      for (let i = 1; i <= 1_000; i++) {
        scheduler.at(i, "", () => {
          ran++;
          void Promise.reject(i);
        });
      }
      const until = () => scheduler.pending === 0;
      await scheduler.run({ until, timeMaxMs: 1, eventsPerTurn });
    } finally {
      globalThis.removeEventListener("unhandledrejection", onUncaught);
    }
    assertEquals(told, Array.from({ length: 1_000 }, (_, i) => i + 1));
    assert(waitedMax < eventsPerTurn, `told after ${waitedMax} more events`);
  });
}

Deno.test("Scheduler.run lists pending events when the time or the steps are used up", async () => {
  const scheduler = new Scheduler();
  const again = () => void scheduler.at(scheduler.nowUs + 100, "heartbeat", again);
  again();
  scheduler.at(9_000, "far away", () => {});
  const late = await assertRejects(
    () => scheduler.run({ until: () => false, timeMaxMs: 5 }),
    LeatError,
  );
  assertEquals(late.code, "deadline_exceeded");
  assertMatch(late.message, /not done at 5 ms; pending: 1 × heartbeat, 1 × far away/);
  assertEquals(scheduler.nowUs, 5_000);
  const long = await assertRejects(
    () => scheduler.run({ until: () => false, timeMaxMs: 1e6, stepsMax: 100 }),
    LeatError,
  );
  assertMatch(long.message, /events; pending: 1 × heartbeat/);
});

Deno.test("Scheduler.run fails when no event is left, and with an event's error", async () => {
  const scheduler = new Scheduler();
  const stuck = await assertRejects(
    () => scheduler.run({ until: () => false, timeMaxMs: 1 }),
    LeatError,
  );
  assertEquals(stuck.code, "failed_precondition");
  scheduler.at(1, "", () => {
    throw new RangeError("broken");
  });
  await assertRejects(() => scheduler.run({ until: () => false, timeMaxMs: 1 }), RangeError);
});
