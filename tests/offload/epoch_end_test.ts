/** The end of an epoch, in virtual time: what the controller of the ratio is told. */
import { chainOf, inOrder } from "../../data/deterministic/chain.ts";
import { END } from "../../data/iterator.ts";
import { rootContext } from "../../data/root_context.ts";
import { Dataset } from "../../mod.ts";
import { RatioControl, type StepWindow } from "../../offload/adapt.ts";
import { ConditionalIterator } from "../../offload/conditional/conditional_iterator.ts";
import { OffloadFigures } from "../../offload/figures.ts";
import { assert, assertEquals } from "../assert.ts";
import { VirtualHost, VirtualService } from "./lib/virtual_service.ts";

/** The splits of workers are longer, so this host finishes first. */
const PER_SPLIT = { local: 50, remote: 1_000 };
const STEP_MS = 10;

/** Counts the elements that it is told of, and never changes the ratio. */
class Witness extends RatioControl {
  elements = 0;

  override observe({ elements }: StepWindow): boolean {
    this.elements += elements;
    return false;
  }
}

/** Reads an epoch in which each side has half of the splits. */
async function epochOf(splits: number) {
  const service = new VirtualService(PER_SPLIT.remote);
  const host = new VirtualHost(service);
  const pipeline = Dataset.range(splits).flatMap(() => Dataset.range(PER_SPLIT.local));
  const root = inOrder(pipeline.node);
  const figures = new OffloadFigures();
  const control = new Witness(0.5);
  const iterator = new ConditionalIterator({
    context: rootContext(root, { host }),
    ...{
      root,
      chain: chainOf(root)!,
      seed: 0n,
      keepsOrder: false,
      timeoutMs: 40_000,
      address: "",
      figures,
    },
    part: { candidate: "p'2", ratio: 0.5, control, openRemote: () => service.open },
  });
  while (await iterator.next() !== END) host.time += STEP_MS;
  iterator.dispose();
  return { told: control.elements, progress: figures.read() };
}

Deno.test("ConditionalIterator tells the controller nothing of the end of an epoch, which no ratio changes", async () => {
  const { told, progress } = await epochOf(4);
  const local = 2 * PER_SPLIT.local;
  assertEquals([progress.local.elements, progress.remote.elements], [local, 2 * PER_SPLIT.remote]);
  // Until this host finishes, it gives half of the elements.
  assert(told > local && told <= 2 * local, `${told}`);
});

Deno.test("ConditionalIterator tells the controller of an epoch while this host can take splits over", async () => {
  const { told, progress } = await epochOf(16);
  // It took over half of the 8, and gave more than its own.
  assert(progress.local.elements > 8 * PER_SPLIT.local);
  assert(told > 16 * PER_SPLIT.local, `${told}`);
});
