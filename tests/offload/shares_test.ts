/** Which splits the conditional operator gives the service, in virtual time. */
import { END } from "../../data/iterator.ts";
import { rootContext } from "../../data/root_context.ts";
import { Dataset } from "../../mod.ts";
import { ConditionalIterator } from "../../offload/conditional/conditional_iterator.ts";
import { cutPointsOf } from "../../offload/cut_points.ts";
import { OffloadFigures } from "../../offload/figures.ts";
import { assertEquals } from "../assert.ts";
import { upTo } from "../service/lib/carriers.ts";
import { VirtualHost, VirtualService } from "./lib/virtual_service.ts";

for (const keepsOrder of [false, true]) {
  const how = keepsOrder ? "with" : "without";
  Deno.test(`ConditionalIterator gives the service share after share of many splits, ${how} order`, async () => {
    const splits = 40_000;
    const service = new VirtualService(1);
    const host = new VirtualHost(service);
    // A split has 4,096 elements. The service gives only the first of each.
    const pipeline = Dataset.range(splits * 4_096).map((x) => x);
    const { root, chain } = cutPointsOf(pipeline.node).candidates[0]!;
    const figures = new OffloadFigures();
    const iterator = new ConditionalIterator({
      context: rootContext(pipeline.node, { host }),
      ...{ root, chain, seed: 0n, keepsOrder, timeoutMs: 40_000, address: "", figures },
      part: { candidate: "p'2", ratio: 1, openRemote: () => service.open },
    });
    const given: unknown[] = [];
    for (let element = await iterator.next(); element !== END; element = await iterator.next()) {
      given.push(element);
    }
    assertEquals(given, upTo(splits));
    assertEquals([service.readers, figures.read().local.elements], [2, 0]);
    iterator.dispose();
  });
}
