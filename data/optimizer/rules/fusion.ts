/** Rules `mapFusion`, `filterFusion` and `mapAndFilterFusion`: operators whose functions share a loop. */
import type { LoopKind } from "../fused_loop.ts";
import type { RuleName } from "../options.ts";
import { nameOf, type Rule } from "../rule.ts";

/** The rule for two adjacent operators. */
export function fusionOf(upper: LoopKind, lower: LoopKind): RuleName {
  if (upper !== lower) return "mapAndFilterFusion";
  return upper === "map" ? "mapFusion" : "filterFusion";
}

export const fusionRules: readonly Rule[] =
  (["mapFusion", "filterFusion", "mapAndFilterFusion"] as const)
    .map((name) => ({
      name,
      describe(site) {
        const [input] = site.inputs;
        const upper = site.node.loopKind, lower = input?.node.loopKind;
        if (upper === undefined || lower === undefined || fusionOf(upper, lower) !== name) return;
        return `${nameOf(site)} calls its function in one loop with that of ${nameOf(input!)}: ` +
          "so the engine compiles both into it, and elements in between need no memory.";
      },
    }));
