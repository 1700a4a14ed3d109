/** An outage of the service, in virtual time: what the controller of the ratio is told. */
import type { Feed } from "../../actors/client/feed.ts";
import { END } from "../../data/iterator.ts";
import { rootContext } from "../../data/root_context.ts";
import { Dataset, DenoHost } from "../../mod.ts";
import { RatioControl, type StepWindow } from "../../offload/adapt.ts";
import { ConditionalIterator } from "../../offload/conditional/conditional_iterator.ts";
import type { OpenRemote } from "../../offload/conditional/remote_side.ts";
import { cutPointsOf } from "../../offload/cut_points.ts";
import { OffloadFigures } from "../../offload/figures.ts";
import { encodeMessage } from "../../transport/codec.ts";
import { Payload } from "../../transport/payload.ts";
import { assert, assertEquals } from "../assert.ts";
import { sorted, upTo } from "../service/lib/carriers.ts";

const SPLITS = 256;
const PER_SPLIT = 10;
const TIMEOUT_MS = 40_000;
const RETRY_AFTER_MS = 10_000;
const STEP_MS = 10;

/** Gives the elements of a range at once, but only of some splits of its first reader. */
class Service {
  isUp = true;
  readers = 0;
  readonly #servedFirst: number;

  constructor(servedFirst: number) {
    this.#servedFirst = servedFirst;
  }

  readonly open: OpenRemote = (sequences, feed) => {
    const isFirst = this.readers++ === 0;
    for (const sequence of sequences.slice(0, isFirst ? this.#servedFirst : Infinity)) {
      if (this.isUp) this.#give(sequence, feed);
    }
    this.isUp &&= !isFirst;
    // As if all that is taken arrived just before.
    const givenBytes = feed.bytes;
    feed.stats = () => ({ bytes: givenBytes - feed.bytes, bufferedBytes: 0, reads: [] }) as never;
    return () => {};
  };

  #give(sequence: number, feed: Feed): void {
    for (let index = 0; index < PER_SPLIT; index++) {
      const element = new Payload(encodeMessage(PER_SPLIT * sequence + index));
      feed.push({ kind: "element", element, place: { sequence, split: sequence, index } });
    }
    feed.push({ kind: "split_end", place: { sequence, split: sequence, index: PER_SPLIT } });
  }
}

/** A host whose time passes where the test lets it, and where a lost service is waited for. */
class OutageHost extends DenoHost {
  time = 0;
  #yields = 0;
  readonly #service: Service;

  constructor(service: Service) {
    super();
    this.#service = service;
  }

  override nowMs(): number {
    return this.time;
  }

  override warn(): void {}

  override async sleep(ms: number): Promise<void> {
    if (this.#service.isUp) return await new Promise(() => {});
    // Meanwhile the trainer prepares all that it may ahead, and yields before each element.
    for (let yields = -1; yields !== this.#yields;) {
      yields = this.#yields;
      for (let i = 0; i < 10; i++) await super.yield();
    }
    this.time += ms;
  }

  override async yield(): Promise<void> {
    this.#yields++;
    await super.yield();
  }
}

/** Notes what it is told, and never changes the ratio. */
class Witness extends RatioControl {
  readonly windows: StepWindow[] = [];

  override observe(window: StepWindow): boolean {
    this.windows.push(window);
    return false;
  }
}

Deno.test("ConditionalIterator tells the controller nothing of an outage of the service", async () => {
  const service = new Service(40);
  const host = new OutageHost(service);
  const pipeline = Dataset.range(SPLITS * PER_SPLIT).map((x) => x);
  const { root, chain } = cutPointsOf(pipeline.node).candidates[0]!;
  const control = new Witness(0.5);
  const figures = new OffloadFigures();
  const iterator = new ConditionalIterator({
    context: rootContext(pipeline.node, { host }),
    ...{ root, chain, seed: 0n, keepsOrder: false, timeoutMs: TIMEOUT_MS, address: "", figures },
    part: { candidate: "p'2", ratio: 0.5, control, openRemote: () => service.open },
  });
  const given: unknown[] = [];
  const read = async (isDone: () => boolean) => {
    while (!isDone()) {
      const element = await iterator.next();
      if (element === END) return;
      given.push(element);
      host.time += STEP_MS;
    }
  };
  const isRemote = () => figures.read().state === "local and remote";

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
