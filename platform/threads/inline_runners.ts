/** Runners in the calling thread, on this host. */
import { PipelineRunners } from "../../actors/worker/runner/pipeline_runner.ts";
import type { RunnerFactory } from "../../actors/worker/runner/runner.ts";
import type { Files } from "../../data/host.ts";
import { workerHost } from "../deno_host.ts";
import { workerFiles, type WorkerStorage } from "../storage/storage.ts";

/**
 * Creates inline runners. A user function blocks the thread while it runs. Once `close()` has
 * resolved, no folder is being listed.
 */
export function inlineRunners(storage: WorkerStorage): RunnerFactory {
  const listings = new Set<Promise<unknown>>();
  const runners = new PipelineRunners(
    workerHost(storage, { files: trackListings(workerFiles(storage), listings) }),
  );
  return {
    start: (settings, splits) => runners.start(settings, splits),
    listSplits: (graph) => runners.listSplits(graph),
    async close() {
      await runners.close();
      await Promise.allSettled(listings);
    },
  };
}

/** Keeps running listings in `listings`, because a disposed runner does not await them. */
function trackListings(files: Files, listings: Set<Promise<unknown>>): Files {
  return {
    open: (path, signal, firstBytes) => files.open(path, signal, firstBytes),
    list(pattern, signal) {
      const listing = files.list(pattern, signal).finally(() => listings.delete(listing));
      listings.add(listing);
      return listing;
    },
  };
}
