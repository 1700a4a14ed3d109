/**
 * The far side of `thread_start.ts`: says that it is there.
 *
 * @module
 */

/// <reference lib="deno.worker" />

self.postMessage("here");
