/** Which splits the conditional operator gives the service, in virtual time. */
import { END } from "../../data/iterator.ts";
import { chainOf } from "../../data/deterministic/chain.ts";
import { rootContext } from "../../data/root_context.ts";
import { Dataset } from "../../mod.ts";
import { RatioControl } from "../../offload/adapt.ts";
import { ConditionalIterator } from "../../offload/conditional/conditional_iterator.ts";
import { OffloadFigures } from "../../offload/figures.ts";
import { assert, assertEquals } from "../assert.ts";
import { sorted, upTo } from "../service/lib/carriers.ts";
import { VirtualHost, VirtualService } from "./lib/virtual_service.ts";

interface Epoch {
  readonly pipeline: Dataset<unknown>;
  readonly service: VirtualService;
  readonly host: VirtualHost;
  readonly ratio: number;
  readonly control?: RatioControl;
  readonly keepsOrder?: boolean;
}

/** An iterator of one epoch, and its figures. */
function open({ pipeline: { node }, service, host, keepsOrder = false, ...part }: Epoch) {
  const figures = new OffloadFigures();
  const iterator = new ConditionalIterator({
    ...{ context: rootContext(node, { host }), root: node, chain: chainOf(node)! },
    ...{ seed: 0n, keepsOrder, timeoutMs: 40_000, address: "", figures },
    part: { ...part, candidate: "p'2", openRemote: () => service.open },
  });
  return { iterator, figures };
}

for (const keepsOrder of [false, true]) {
  const how = keepsOrder ? "with" : "without";
  Deno.test(`ConditionalIterator gives the service share after share of many splits, ${how} order`, async () => {
    const splits = 40_000;
    const service = new VirtualService(1);
    const host = new VirtualHost(service);
    // A split has 4,096 elements. The service gives only the first of each.
    const pipeline = Dataset.range(splits * 4_096).map((x) => x);
    const { iterator, figures } = open({ pipeline, service, host, ratio: 1, keepsOrder });
    const given: unknown[] = [];
    for (let element = await iterator.next(); element !== END; element = await iterator.next()) {
      given.push(element);
    }
    assertEquals(given, upTo(splits));
    assertEquals([service.readers, figures.read().local.elements], [2, 0]);
    iterator.dispose();
  });
}

Deno.test("ConditionalIterator opens no reader if it is disposed while the splits are listed", async () => {
  const service = new VirtualService(1);
  const host = new VirtualHost(service);
  const { iterator } = open({ pipeline: Dataset.range(64), service, host, ratio: 0.5 });
  const first = iterator.next();
  iterator.dispose();
  assertEquals([await first, service.readers], [END, 0]);
});

/** A dataset of `splits` splits, with 100 elements each. @param prepare Called for each element. */
function fewSplits(splits: number, prepare: () => void): Dataset<unknown> {
  return Dataset.range(splits)
    .flatMap((split, { Dataset }) => Dataset.range(100).map((x) => 100 * split + x))
    .map((x) => (prepare(), x));
}

Deno.test("ConditionalIterator corrects a ratio that is less than one split", async () => {
  const service = new VirtualService(100);
  const host = new VirtualHost(service);
  // Workers are far faster than this host.
  const pipeline = fewSplits(16, () => host.time += 50);
  const control = new RatioControl(0.03);
  for (let epoch = 0; epoch < 2; epoch++) {
    const { iterator } = open({ pipeline, service, host, control, ratio: control.ratio });
    const given: unknown[] = [];
    for (let element = await iterator.next(); element !== END; element = await iterator.next()) {
      given.push(element);
      host.time += 10;
    }
    assertEquals(sorted(given as number[]), upTo(1_600));
    iterator.dispose();
  }
  assert(control.ratio > 0.3, `a ratio of ${control.ratio}`);
});

Deno.test("ConditionalIterator uses a service again although its share is less than one split", async () => {
  // The service fails at once.
  const service = new VirtualService(100, 0);
  const host = new VirtualHost(service);
  const pipeline = fewSplits(20, () => {});
  const control = new RatioControl(0.05);
  const { iterator, figures } = open({ pipeline, service, host, control, ratio: control.ratio });
  while (figures.read().fallbacks === 0) await iterator.next();
  // Some splits are begun: the ratio gives less than one of the others.
  for (let i = 0; i < 100; i++) await iterator.next();
  service.isUp = true;
  host.time += 10_000;
  let element: unknown;
  do element = await iterator.next(); while (element !== END && figures.read().state === "local");
  assertEquals([figures.read().state, service.readers], ["local and remote", 2]);
  iterator.dispose();
});
