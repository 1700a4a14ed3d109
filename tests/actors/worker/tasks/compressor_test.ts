/** Whether a task compresses its elements. */
import { Compressor } from "../../../../actors/worker/tasks/compressor.ts";
import { assert, assertEquals, assertStringIncludes } from "../../../assert.ts";

const FRAME = new Uint8Array(100_000);

/** The result of a trial: zstd at 200 MB/s. */
const trial = (ratio: number) => ({ bytes: 100_000, compressedBytes: 100_000 * ratio, ms: 0.5 });

/** A client's reports, an element after each, and the result of its trial. */
function reports(
  compressor: Compressor,
  count: number,
  bandwidth: { bytesPerSecond: number; waitingShare?: number },
  ratio = 0.3,
): void {
  for (let report = 0; report < count; report++) {
    compressor.noteReport({ waitingShare: 0.9, ...bandwidth }, { busyMs: 0, bytes: 0 });
    const wish = compressor.takeWish();
    compressor.noteArrival(FRAME, wish === undefined ? undefined : trial(ratio), wish);
  }
}

Deno.test("a Compressor with a fixed codec uses it and reports it", () => {
  for (const setting of ["zstd", "gzip"] as const) {
    const compressor = new Compressor(setting);
    assertEquals(compressor.takeWish(), { codec: setting, isTrial: false });
    compressor.noteReport({ bytesPerSecond: 1e12, waitingShare: 1 }, { busyMs: 0, bytes: 0 });
    assertEquals(compressor.takeWish(), { codec: setting, isTrial: false });
    assertEquals(compressor.noteArrival(FRAME, trial(0.3), compressor.takeWish()), 100_000);
    const { active, bytes, compressedBytes } = compressor.figures;
    assertEquals([active, bytes, compressedBytes], [setting, 100_000, 30_000]);
  }
  const none = new Compressor("none");
  reports(none, 100, { bytesPerSecond: 1e5 });
  assertEquals([none.takeWish(), none.figures.ms], [undefined, 0]);
});

Deno.test("an automatic Compressor tries nothing before a client reads over a network", () => {
  const compressor = new Compressor();
  for (let element = 0; element < 1_000; element++) {
    assertEquals(compressor.takeWish(), undefined);
    compressor.noteArrival(FRAME, undefined, undefined);
  }
});

Deno.test("an automatic Compressor compresses over a slow network, and not over one faster than itself", () => {
  const slow = new Compressor();
  reports(slow, 40, { bytesPerSecond: 10e6 });
  assertEquals(slow.figures.active, "zstd");
  assertStringIncludes(slow.figures.reason, "30 % of the bytes are left, at 10 MB/s");
  const fast = new Compressor();
  reports(fast, 1_000, { bytesPerSecond: 1_000e6 });
  assertEquals(fast.figures.active, "none");
});

Deno.test("an automatic Compressor leaves elements that take longer to make than to send", () => {
  const compressor = new Compressor();
  for (let report = 1; report < 40; report++) {
    // 10 MB/s come out of the pipeline, and 12 MB/s could be sent.
    const making = { busyMs: 100 * report, bytes: 1e6 * report };
    compressor.noteReport({ bytesPerSecond: 12e6, waitingShare: 0.9 }, making);
    assertEquals(compressor.takeWish(), undefined);
  }
  assertStringIncludes(compressor.figures.reason, "longer to make than to send");
});

Deno.test("an automatic Compressor tries data that does not shrink ever more rarely", () => {
  const compressor = new Compressor();
  const trials = (elements: number) => {
    const before = compressor.figures.ms;
    reports(compressor, elements, { bytesPerSecond: 10e6 }, 1);
    return (compressor.figures.ms - before) / 0.5;
  };
  const first = trials(1_000);
  assert(first >= 3 && first <= 8, `${first}`);
  assert(trials(100_000) <= 30);
  assertEquals(compressor.figures.active, "none");
  // When the data changes, it is noticed.
  reports(compressor, 40_000, { bytesPerSecond: 10e6 }, 0.2);
  assertEquals(compressor.figures.active, "zstd");
});

Deno.test("an automatic Compressor changes neither at the first report nor for a small gain", () => {
  const compressor = new Compressor();
  reports(compressor, 40, { bytesPerSecond: 10e6 });
  assertEquals(compressor.figures.active, "zstd");
  // Compressed they would come 1.1 times as fast: too little to begin, and enough to continue.
  reports(compressor, 40, { bytesPerSecond: 180e6 });
  assertEquals(compressor.figures.active, "zstd");
  compressor.noteReport({ bytesPerSecond: 1_000e6, waitingShare: 0.9 }, { busyMs: 0, bytes: 0 });
  assertEquals(compressor.figures.active, "zstd", "one report is none");
  reports(compressor, 2, { bytesPerSecond: 1_000e6 });
  assertEquals(compressor.figures.active, "none");
  const other = new Compressor();
  reports(other, 1_000, { bytesPerSecond: 180e6 });
  assertEquals(other.figures.active, "none");
});

Deno.test("a Compressor counts an element by the wish it was made with, whatever it wishes now", () => {
  const compressor = new Compressor();
  reports(compressor, 40, { bytesPerSecond: 10e6 });
  const { active, bytes, compressedBytes } = compressor.figures;
  assertEquals(active, "zstd");
  const sample = { bytes: 1_000, compressedBytes: 300, ms: 0.1 };
  const wish = { codec: "zstd", isTrial: true } as const;
  assertEquals(compressor.noteArrival(FRAME, sample, wish), 100_000);
  assertEquals([compressor.figures.bytes, compressor.figures.compressedBytes], [
    bytes,
    compressedBytes,
  ]);
  const made = compressor.takeWish();
  reports(compressor, 2, { bytesPerSecond: 1_000e6 });
  assertEquals(compressor.figures.active, "none");
  assertEquals(compressor.noteArrival(FRAME.subarray(70_000), trial(0.3), made), 100_000);
});

Deno.test("an automatic Compressor continues when training loops no longer wait", () => {
  const compressor = new Compressor();
  reports(compressor, 40, { bytesPerSecond: 10e6 });
  reports(compressor, 40, { bytesPerSecond: 10e6, waitingShare: 0 });
  assertEquals(compressor.figures.active, "zstd");
  assertStringIncludes(compressor.figures.reason, "hardly wait");
});
