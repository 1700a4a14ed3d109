/** An outage of the service, in virtual time: what the controller of the ratio is told. */
import { END } from "../../data/iterator.ts";
import { rootContext } from "../../data/root_context.ts";
import { Dataset, LeatError } from "../../mod.ts";
import { RatioControl, type StepWindow } from "../../offload/adapt.ts";
import { ConditionalIterator } from "../../offload/conditional/conditional_iterator.ts";
import { cutPointsOf } from "../../offload/cut_points.ts";
import { OffloadFigures } from "../../offload/figures.ts";
import { assert, assertEquals } from "../assert.ts";
import { sorted, upTo } from "../service/lib/carriers.ts";
import { VirtualHost, VirtualService } from "./lib/virtual_service.ts";

const SPLITS = 256;
const PER_SPLIT = 10;
const TIMEOUT_MS = 40_000;
const RETRY_AFTER_MS = 10_000;
const STEP_MS = 10;

/** Notes what it is told, and never changes the ratio. */
class Witness extends RatioControl {
  readonly windows: StepWindow[] = [];

  override observe(window: StepWindow): boolean {
    this.windows.push(window);
    return false;
  }
}

/** Opens iterators of one pipeline, which share their figures. */
function opener(service: VirtualService, control: RatioControl) {
  const host = new VirtualHost(service);
  const pipeline = Dataset.range(SPLITS * PER_SPLIT).map((x) => x);
  const { root, chain } = cutPointsOf(pipeline.node).candidates[0]!;
  const figures = new OffloadFigures();
  const open = () => {
    const iterator = new ConditionalIterator({
      context: rootContext(pipeline.node, { host }),
      ...{ root, chain, seed: 0n, keepsOrder: false, timeoutMs: TIMEOUT_MS, address: "", figures },
      part: { candidate: "p'2", ratio: 0.5, control, openRemote: () => service.open },
    });
    const given: unknown[] = [];
    /** Reads until `isDone`, or to the end. */
    const read = async (isDone: () => boolean) => {
      while (!isDone()) {
        const element = await iterator.next();
        if (element === END) return;
        given.push(element);
        host.time += STEP_MS;
      }
    };
    return { iterator, given, read };
  };
  return { host, figures, open, isRemote: () => figures.read().state === "local and remote" };
}

Deno.test("ConditionalIterator tells the controller nothing of an outage of the service", async () => {
  const service = new VirtualService(PER_SPLIT, 40);
  const control = new Witness(0.5);
  const { host, figures, open, isRemote } = opener(service, control);
  const { iterator, given, read } = open();

  await read(() => figures.read().fallbacks > 0);
  assert(control.windows.length > 0);
  const until = given.length + 100;
  await read(() => given.length === until);
  assert(!isRemote());
  service.isUp = true;
  host.time += RETRY_AFTER_MS;
  await read(isRemote);
  const before = control.windows.length;
  const returned = given.length;
  await read(() => given.length === returned + 30);
  assertEquals(control.windows.length, before + 1);
  await read(() => false);
  const longestMs = Math.max(...control.windows.map(({ elapsedMs }) => elapsedMs));
  assert(longestMs < 100 * STEP_MS, `a window of ${longestMs} ms`);
  assertEquals(sorted(given as number[]), upTo(SPLITS * PER_SPLIT));
  iterator.dispose();
});

Deno.test("ConditionalIterator begins without a service that failed, and returns to it", async () => {
  const service = new VirtualService(PER_SPLIT, 40);
  const { host, figures, open, isRemote } = opener(service, new Witness(0.5));
  const before = open();
  await before.read(() => figures.read().fallbacks > 0);
  before.iterator.dispose();

  const { iterator, given, read } = open();
  const fromMs = host.time;
  await read(() => given.length === 100);
  assertEquals(host.time - fromMs, 100 * STEP_MS);
  assert(!isRemote());
  service.isUp = true;
  // The reader that tries the service was opened before.
  host.time += TIMEOUT_MS;
  await read(() => given.length === 200);
  host.time += RETRY_AFTER_MS;
  await read(isRemote);
  assert(isRemote());
  await read(() => false);
  assertEquals(sorted(given as number[]), upTo(SPLITS * PER_SPLIT));
  assertEquals(figures.read().fallbacks, 1);
  iterator.dispose();
});

Deno.test("ConditionalIterator begins without a service of which every try fails, however long", async () => {
  const service = new VirtualService(PER_SPLIT, 40);
  const { host, figures, open } = opener(service, new Witness(0.5));
  const before = open();
  await before.read(() => figures.read().fallbacks > 0);
  const fromMs = host.time;
  await before.read(() => {
    host.time += 1_000;
    return service.readers === 5;
  });
  assert(host.time > fromMs + 4 * TIMEOUT_MS);
  // The epoch ends just before the last try does.
  host.time += TIMEOUT_MS - 1;
  before.iterator.dispose();

  const { iterator, given, read } = open();
  const againMs = host.time;
  await read(() => given.length === 10);
  assertEquals(host.time - againMs, 10 * STEP_MS);
  assertEquals(figures.read().fallbacks, 1);
  iterator.dispose();
});

Deno.test("a service that failed counts as back after a while, which doubles until it gives an element", () => {
  const figures = new OffloadFigures();
  const gone = new LeatError("unavailable", "gone");
  const awayMs = (fromMs: number) => {
    figures.fellBack(gone, fromMs);
    let ms = fromMs;
    while (figures.isAway(ms)) ms += 1_000;
    return ms - fromMs;
  };
  assertEquals([awayMs(0), awayMs(100_000), awayMs(900_000)], [30_000, 60_000, 120_000]);
  assertEquals(figures.read().fallbacks, 3);
  figures.resumed();
  assertEquals(awayMs(2_000_000), 30_000);
  figures.resumed();
  figures.wentAway(3_000_000, 40_000);
  assertEquals([39_999, 40_000].map((ms) => figures.isAway(3_000_000 + ms)), [true, false]);
  figures.wentAway(4_000_000, 40_000);
  assertEquals([79_999, 80_000].map((ms) => figures.isAway(4_000_000 + ms)), [true, false]);
});

Deno.test("ConditionalIterator uses a service that counts as back, and says so from its first element on", async () => {
  const service = new VirtualService(PER_SPLIT, 40);
  const { host, figures, open, isRemote } = opener(service, new Witness(0.5));
  const before = open();
  await before.read(() => figures.read().fallbacks > 0);
  before.iterator.dispose();
  assert(!isRemote());

  service.isUp = true;
  host.time += 30_000;
  const { iterator, given, read } = open();
  await read(isRemote);
  // The ratio is a half.
  assert(given.length <= 4, `${given.length}`);
  await read(() => false);
  assertEquals(sorted(given as number[]), upTo(SPLITS * PER_SPLIT));
  assertEquals(figures.read().fallbacks, 1);
  iterator.dispose();
});
