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
  const lists = new Set<Promise<unknown>>();
  const runners = new PipelineRunners(
    workerHost(storage, { files: withLists(workerFiles(storage), lists) }),
  );
  return {
    start: (settings, splits) => runners.start(settings, splits),
    listSplits: (graph) => runners.listSplits(graph),
    async close() {
      await runners.close();
      await Promise.allSettled(lists);
    },
  };
}

/** Keeps running listings in `lists`, because a runner that is disposed does not await its own. */
function withLists(files: Files, lists: Set<Promise<unknown>>): Files {
  return {
    open: (path, signal) => files.open(path, signal),
    list(pattern, signal) {
      const list = files.list(pattern, signal).finally(() => lists.delete(list));
      lists.add(list);
      return list;
    },
  };
}
