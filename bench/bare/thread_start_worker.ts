/** The remote side of `thread_start.ts`: reports that it runs. */

/// <reference lib="deno.worker" />

self.postMessage("here");
