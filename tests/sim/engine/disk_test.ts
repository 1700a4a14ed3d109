/** The simulated disk: passes the suite of durable logs, and shows its own faults. */
import type { DurableLog } from "../../../actors/runtime/durable_log.ts";
import { LeatError } from "../../../core/error.ts";
import { Counters } from "../../../sim/engine/counters.ts";
import { SimDisk } from "../../../sim/engine/disk.ts";
import { Life } from "../../../sim/engine/life.ts";
import { type FaultOptions, NO_FAULTS } from "../../../sim/faults/options.ts";
import { SimRandom } from "../../../sim/engine/random.ts";
import { Scheduler } from "../../../sim/engine/scheduler.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../../assert.ts";
import { type LogPlace, testDurableLog } from "../../lib/log_conformance.ts";

let places = 0n;

/** A disk whose virtual time passes while a test waits for it. */
class Place implements LogPlace {
  readonly counters = new Counters();
  readonly scheduler = new Scheduler();
  readonly disk: SimDisk;
  #life = new Life(this.scheduler, "node", 1);
  #crashed = Promise.withResolvers<never>();
  #waiting = 0;
  #runs = false;

  constructor(seed: bigint, faults: Partial<FaultOptions> = {}) {
    this.disk = new SimDisk({
      random: new SimRandom(seed),
      counters: this.counters,
      faults: () => ({ ...NO_FAULTS, ...faults }),
    });
    this.#crashed.promise.catch(() => {});
  }

  async open(): Promise<DurableLog> {
    const log = await this.#wait(this.disk.open("log", this.#life));
    return {
      read: () => this.#wait(log.read()),
      append: (record) => log.append(record),
      sync: () => this.#wait(log.sync()),
      compact: (snapshot) => this.#wait(log.compact(snapshot)),
      close: () => this.#wait(log.close()),
    };
  }

  /** Promises of an ended life never settle; the test gets an error instead. */
  crash(): Promise<void> {
    this.disk.crash();
    this.#life.end();
    this.#life = new Life(this.scheduler, "node", this.#life.number + 1);
    this.#crashed.reject(new LeatError("unavailable", "The node has crashed"));
    this.#crashed = Promise.withResolvers<never>();
    this.#crashed.promise.catch(() => {});
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }

  async #wait<T>(answer: Promise<T>): Promise<T> {
    this.#waiting++;
    try {
      if (!this.#runs) this.#run();
      return await Promise.race([answer, this.#crashed.promise]);
    } finally {
      this.#waiting--;
    }
  }

  async #run(): Promise<void> {
    this.#runs = true;
    const until = () => this.#waiting === 0 || this.scheduler.pending === 0;
    await this.scheduler.run({ until, timeMaxMs: 60_000 });
    this.#runs = false;
    if (this.#waiting > 0 && this.scheduler.pending > 0) this.#run();
  }
}

testDurableLog("SimDisk", () => Promise.resolve(new Place(++places)));

Deno.test("SimDisk keeps a prefix of the records that were not durable at a crash", async () => {
  const survivors = new Set<number>();
  const counters = new Counters();
  for (let seed = 1n; seed <= 60n; seed++) {
    const place = new Place(seed);
    const log = await place.open();
    log.append(Uint8Array.of(0));
    await log.sync();
    for (let i = 1; i <= 4; i++) log.append(Uint8Array.of(i));
    await place.crash();
    const { records } = await (await place.open()).read();
    assertEquals(records.map(([first]) => first), [0, 1, 2, 3, 4].slice(0, records.length));
    survivors.add(records.length);
    counters.add(place.counters);
  }
  assertEquals([...survivors].sort(), [1, 2, 3, 4, 5]);
  assert(counters.get("log_tail_torn") > 0 && counters.get("log_tail_lost") > 0);
});

Deno.test("SimDisk leaves the old log or the new one after a crash during compaction, each sometimes", async () => {
  const found = new Set<string>();
  for (let seed = 1n; seed <= 40n; seed++) {
    const place = new Place(seed);
    const log = await place.open();
    log.append(Uint8Array.of(1));
    await log.sync();
    log.compact(Uint8Array.of(9)).catch(() => {});
    await place.crash();
    const { snapshot, records } = await (await place.open()).read();
    found.add(JSON.stringify([snapshot?.[0] ?? null, records.map(([first]) => first)]));
  }
  assertEquals([...found].sort(), ["[9,[]]", "[null,[1]]"]);
});

Deno.test("SimDisk refuses records that do not fit, and accepts them once there is room", async () => {
  const place = new Place(1n);
  place.disk.capacityBytes = 10;
  const log = await place.open();
  log.append(new Uint8Array(8));
  await log.sync();
  log.append(new Uint8Array(8));
  const full = await assertRejects(() => log.sync(), LeatError);
  assertEquals([full.code, place.disk.hasFailed], ["resource_exhausted", true]);
  place.disk.capacityBytes = 100;
  await log.sync();
  const { records } = await log.read();
  assertEquals(records.map(({ length }) => length), [8, 8]);
  assertEquals(place.counters.get("disk_full"), 1);
});

Deno.test("SimDisk opens a log once", async () => {
  const place = new Place(1n);
  await place.open();
  const error = await assertRejects(() => place.open(), LeatError);
  assertEquals(error.code, "failed_precondition");
});

Deno.test("SimDisk keeps a prefix of the appended records after a failed write, and fails later ones", async () => {
  const survivors = new Set<number>();
  for (let seed = 1n; seed <= 60n; seed++) {
    const place = new Place(seed, { diskErrorProbability: 1 });
    const log = await place.open();
    for (let i = 0; i < 3; i++) log.append(Uint8Array.of(i));
    assertEquals((await assertRejects(() => log.sync(), LeatError)).code, "data_loss");
    assertEquals((await assertRejects(() => log.sync(), LeatError)).code, "data_loss");
    assertThrows(() => log.append(Uint8Array.of(9)), LeatError);
    await log.close().catch(() => {});
    assertEquals([place.counters.get("disk_error"), place.disk.hasFailed], [1, true]);
    const { records } = await (await place.open()).read();
    assertEquals(records.map(([first]) => first), [0, 1, 2].slice(0, records.length));
    survivors.add(records.length);
  }
  assertEquals([...survivors].sort(), [0, 1, 2, 3]);
});

Deno.test("SimDisk loses nothing when a write is slow", async () => {
  const place = new Place(1n, { diskSlowProbability: 0.2, diskSlowMaxMs: 1_000 });
  const log = await place.open();
  const tookMs: number[] = [];
  for (let i = 0; i < 50; i++) {
    const startUs = place.scheduler.nowUs;
    log.append(Uint8Array.of(i));
    await log.sync();
    tookMs.push((place.scheduler.nowUs - startUs) / 1_000);
  }
  const slow = tookMs.filter((ms) => ms > NO_FAULTS.diskSyncMaxMs).length;
  assert(slow > 3 && slow < 25, `${slow} of 50 writes were slow`);
  assertEquals(place.counters.get("disk_slow") >= slow, true);
  assertEquals((await log.read()).records.length, 50);
});
