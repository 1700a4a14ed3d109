/** The conformance suite of durable logs, for every kind of storage. */
import type { DurableLog } from "../../actors/runtime/durable_log.ts";
import { LeatError } from "../../core/error.ts";
import { assert, assertEquals, assertRejects } from "../assert.ts";

/** A place that holds one log and can lose power. */
export interface LogPlace extends AsyncDisposable {
  /** Opens the log that is kept here. */
  open(): Promise<DurableLog>;
  /** Cuts the power: what is not durable may be lost. The log may be opened again. */
  crash(): Promise<void>;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Registers the tests of one kind of log. */
export function testDurableLog(kind: string, createPlace: () => Promise<LogPlace>): void {
  const test = (criterion: string, body: (place: LogPlace) => Promise<void>) =>
    Deno.test(`${kind}: ${criterion}`, async () => {
      await using place = await createPlace();
      await body(place);
    });

  test("a new log is empty", async (place) => {
    const log = await place.open();
    assertEquals(await textOf(log), { snapshot: undefined, records: [] });
    await log.close();
  });

  test("records come back in order after closing", async (place) => {
    let log = await place.open();
    const texts = Array.from({ length: 300 }, (_, i) => `record ${i}`);
    for (const text of texts) log.append(encoder.encode(text));
    await log.close();
    log = await place.open();
    assertEquals((await textOf(log)).records, texts);
    await log.close();
  });

  test("an empty record and one of a megabyte come back whole", async (place) => {
    const large = Uint8Array.from({ length: 1 << 20 }, (_, i) => i * 31);
    let log = await place.open();
    log.append(new Uint8Array(0));
    log.append(large);
    await log.sync();
    await log.close();
    log = await place.open();
    const { records } = await log.read();
    assertEquals(records.map((record) => record.length), [0, large.length]);
    assert(records[1]!.every((byte, i) => byte === large[i]));
    await log.close();
  });

  test("what was synced survives a crash, what was not is a suffix at most", async (place) => {
    let log = await place.open();
    for (const text of ["a", "b"]) log.append(encoder.encode(text));
    await log.sync();
    log.append(encoder.encode("c"));
    await log.sync();
    for (const text of ["d", "e", "f"]) log.append(encoder.encode(text));
    await place.crash();
    log = await place.open();
    const found = (await textOf(log)).records.join("");
    assert("abcdef".startsWith(found) && found.length >= 3, `found "${found}"`);
    await log.close();
  });

  test("a crash while a sync is under way loses only a suffix", async (place) => {
    let log = await place.open();
    log.append(encoder.encode("a"));
    await log.sync();
    for (const text of ["b", "c", "d"]) log.append(encoder.encode(text));
    const cut = log.sync().catch(() => {});
    await place.crash();
    await cut;
    log = await place.open();
    const found = (await textOf(log)).records.join("");
    assert("abcd".startsWith(found) && found.length >= 1, `found "${found}"`);
    log.append(encoder.encode("z"));
    await log.close();
    log = await place.open();
    assertEquals((await textOf(log)).records.join(""), `${found}z`);
    await log.close();
  });

  test("overlapping syncs cover everything appended before each", async (place) => {
    let log = await place.open();
    const syncs: Promise<void>[] = [];
    const texts = Array.from({ length: 64 }, (_, i) => `${i}`);
    for (const text of texts) {
      log.append(encoder.encode(text));
      syncs.push(log.sync());
    }
    await Promise.all(syncs);
    await place.crash();
    log = await place.open();
    assertEquals((await textOf(log)).records, texts);
    await log.close();
  });

  test("sync without anything appended resolves", async (place) => {
    const log = await place.open();
    await log.sync();
    log.append(encoder.encode("a"));
    await log.sync();
    await log.sync();
    assertEquals((await textOf(log)).records, ["a"]);
    await log.close();
  });

  test("compact replaces everything by the snapshot, unsynced records too", async (place) => {
    let log = await place.open();
    log.append(encoder.encode("a"));
    await log.sync();
    log.append(encoder.encode("b"));
    await log.compact(encoder.encode("a+b"));
    assertEquals(await textOf(log), { snapshot: "a+b", records: [] });
    await place.crash();
    log = await place.open();
    assertEquals(await textOf(log), { snapshot: "a+b", records: [] });
    await log.close();
  });

  test("what is appended while a compaction runs follows the snapshot", async (place) => {
    let log = await place.open();
    log.append(encoder.encode("a"));
    const compacted = log.compact(encoder.encode("a"));
    log.append(encoder.encode("b"));
    const synced = log.sync();
    await compacted;
    await synced;
    await place.crash();
    log = await place.open();
    assertEquals(await textOf(log), { snapshot: "a", records: ["b"] });
    log.append(encoder.encode("c"));
    await log.compact(encoder.encode("a+b+c"));
    log.append(encoder.encode("d"));
    await log.close();
    log = await place.open();
    assertEquals(await textOf(log), { snapshot: "a+b+c", records: ["d"] });
    await log.close();
  });

  test("a crash during compaction leaves the old log or the new, never a mixture", async (place) => {
    let log = await place.open();
    log.append(encoder.encode("a"));
    await log.compact(encoder.encode("one"));
    for (const text of ["b", "c"]) log.append(encoder.encode(text));
    await log.sync();
    const cut = log.compact(encoder.encode("two")).catch(() => {});
    await place.crash();
    await cut;
    log = await place.open();
    const found = await textOf(log);
    const expected = found.snapshot === "two"
      ? { snapshot: "two", records: [] }
      : { snapshot: "one", records: ["b", "c"] };
    assertEquals(found, expected);
    await log.close();
  });

  test("a closed log refuses", async (place) => {
    const log = await place.open();
    await log.close();
    await log.close();
    let refused: unknown;
    try {
      log.append(encoder.encode("a"));
    } catch (error) {
      refused = error;
    }
    assertEquals((refused as LeatError).code, "failed_precondition");
    const error = await assertRejects(() => log.sync(), LeatError);
    assertEquals(error.code, "failed_precondition");
  });
}

async function textOf(
  log: DurableLog,
): Promise<{ snapshot: string | undefined; records: string[] }> {
  const { snapshot, records } = await log.read();
  return {
    snapshot: snapshot === undefined ? undefined : decoder.decode(snapshot),
    records: records.map((record) => decoder.decode(record)),
  };
}
