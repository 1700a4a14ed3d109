/**
 * The service's actors by kind, ready to be placed on any node.
 *
 * @module
 */
import { type CacheConfig, createCache } from "../actors/cache/cache.ts";
import { createReads, type ReadsConfig } from "../actors/reads/reads.ts";

/** What a node of the service starts at another node's request: what stands before a task. */
export const FRONT_KINDS = {
  cache: (config: CacheConfig) => ({
    kind: "cache",
    restart: "temporary" as const,
    create: (context: Parameters<typeof createCache>[0]) => createCache(context, config),
  }),
  reads: (config: ReadsConfig) => ({
    kind: "reads",
    restart: "temporary" as const,
    create: (context: Parameters<typeof createReads>[0]) => createReads(context, config),
  }),
};
