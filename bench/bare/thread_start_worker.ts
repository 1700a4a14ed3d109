/**
 * The remote side of `thread_start.ts`: reports that it runs.
 *
 * @module
 */

/// <reference lib="deno.worker" />

self.postMessage("here");
