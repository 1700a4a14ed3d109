/** The service's actors by kind, ready to be placed on any node. */
import { type CacheConfig, createCache } from "../../actors/cache/cache.ts";
import { createReads, type ReadsConfig } from "../../actors/coordinated/reads.ts";
import {
  checksOf,
  count,
  fencedRef,
  figure,
  object,
  optional,
} from "../../actors/runtime/checks.ts";

/** Checks configurations from other nodes. Otherwise the actor would fail at its first request. */
const configs = checksOf<{
  cache(config: CacheConfig): null;
  reads(config: ReadsConfig): null;
}>()({
  cache: object({ task: fencedRef, windowBytesMax: count, elementBytesMax: count }),
  reads: object({
    task: fencedRef,
    numConsumers: count,
    skipAfterMs: figure,
    heldBytesMax: optional(count),
  }),
});

/** @throws {LeatError} `invalid_argument` that names the field. */
function checked<C>(kind: keyof typeof configs, config: C): C {
  return configs[kind](config) as C;
}

/** The actors that another node may ask this one to start: caches and schedulers of tasks. */
export const PROXY_KINDS = {
  cache: (asked: CacheConfig) => {
    const config = checked("cache", asked);
    return {
      kind: "cache",
      restart: "temporary" as const,
      create: (context: Parameters<typeof createCache>[0]) => createCache(context, config),
    };
  },
  reads: (asked: ReadsConfig) => {
    const config = checked("reads", asked);
    return {
      kind: "reads",
      restart: "temporary" as const,
      create: (context: Parameters<typeof createReads>[0]) => createReads(context, config),
    };
  },
};
