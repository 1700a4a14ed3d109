/** The kinds of actors that other nodes may start on a node. */
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

/** Checks of configurations from other nodes. Without them an actor would fail at its first request. */
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

/** The caches and the coordinated-read schedulers of tasks. */
export const PROXY_KINDS = {
  cache: (received: CacheConfig) => {
    const config = checked("cache", received);
    return {
      kind: "cache",
      restart: "temporary" as const,
      create: (context: Parameters<typeof createCache>[0]) => createCache(context, config),
    };
  },
  reads: (received: ReadsConfig) => {
    const config = checked("reads", received);
    return {
      kind: "reads",
      restart: "temporary" as const,
      create: (context: Parameters<typeof createReads>[0]) => createReads(context, config),
    };
  },
};
