/**
 * The carriers of production held to the conformance suite.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { inlinePair } from "../../transport/inline.ts";
import { portLink } from "../../transport/web_worker.ts";
import { DenoWorld } from "../../world/deno_world.ts";
import { type CarrierUnderTest, conformance } from "./conformance.ts";

const CUT = new LeatError("unavailable", "cut for the test");

/** What carriers that run in real time have in common. */
function realTime(): Pick<CarrierUnderTest, "worlds" | "run" | "settle" | "close"> {
  return {
    worlds: [new DenoWorld({ logLevel: "off" }), new DenoWorld({ logLevel: "off" })],
    run: (promise) => promise,
    settle: () => new Promise((resolve) => setTimeout(resolve, 20)),
    close: () => Promise.resolve(),
  };
}

conformance("inline", () => {
  const base = realTime();
  const [nearWorld, farWorld] = base.worlds;
  return Promise.resolve({
    ...base,
    name: "inline",
    overtakes: false,
    join(nearId, farId, limits) {
      const [near, far] = inlinePair(nearWorld, nearId, farWorld, farId, limits);
      return Promise.resolve({ near, far, cut: () => near.close(CUT) });
    },
  });
});

conformance("web_worker", () =>
  Promise.resolve({
    ...realTime(),
    name: "web_worker",
    overtakes: false,
    join(nearId, farId, limits) {
      const { port1, port2 } = new MessageChannel();
      const near = portLink(port1, farId, limits);
      const far = portLink(port2, nearId, limits);
      return Promise.resolve({
        near,
        far,
        // A port does not notice: the hub tells both ends.
        cut() {
          port1.close();
          near.close(CUT);
          far.close(CUT);
        },
      });
    },
  }));
