/** The remote side of `thread_start.ts`: sends a message as soon as it runs. */

/// <reference lib="deno.worker" />

self.postMessage("here");
