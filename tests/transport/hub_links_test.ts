/** The links of a node of a hub: which of them are closed, and when. */
import type { Link, NodeId } from "../../actors/runtime/link.ts";
import { LeatError } from "../../core/error.ts";
import { GoneNodes, HubLinks } from "../../transport/hub_links.ts";
import { inlinePair } from "../../transport/inline.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { assertEquals } from "../assert.ts";

const world = new DenoWorld({ logLevel: "off" });
const HERE: NodeId = { node: "here", incarnation: "0" };

function linkTo(node: string, incarnation: string): Link {
  return inlinePair(world, HERE, world, { node, incarnation })[0];
}

/** Why each link is closed; undefined for one that is open. */
async function endsOf(...links: Link[]): Promise<(string | undefined)[]> {
  const ends = links.map((): string | undefined => undefined);
  links.forEach((link, i) => link.closed.then(({ message }) => ends[i] = message));
  await new Promise((resolve) => setTimeout(resolve, 0));
  return ends;
}

Deno.test("HubLinks closes all links to an ended incarnation, later ones too, and no others", async () => {
  const links = new HubLinks();
  const [before, other, later, next] = [
    linkTo("a", "1"),
    linkTo("b", "1"),
    linkTo("a", "1"),
    linkTo("a", "2"),
  ];
  links.track(before);
  links.track(other);
  links.close({ node: "a", incarnation: "1" }, new LeatError("unavailable", "ended"));
  links.track(later);
  links.track(next);
  assertEquals(await endsOf(before, other, later, next), ["ended", undefined, "ended", undefined]);
  links.closeAll(new LeatError("unavailable", "all"));
  assertEquals(await endsOf(other, next), ["all", "all"]);
});

Deno.test("GoneNodes remembers why the last 1,024 nodes ended, unless they are back", () => {
  const gone = new GoneNodes();
  for (let i = 0; i <= 1_024; i++) gone.add(`n${i}`, new LeatError("unavailable", `end ${i}`));
  gone.delete("n2");
  const why = ["n0", "n1", "n2", "n1024"].map((node) => gone.get(node)?.message);
  assertEquals(why, [undefined, "end 1", undefined, "end 1024"]);
});
