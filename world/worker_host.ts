/**
 * The host of a worker's pipelines.
 */

import { DenoHost } from "./deno_host.ts";
import { Images } from "./images.ts";
import { workerFiles, type WorkerStorage } from "./storage.ts";

/** A host with the files that a worker's pipelines reach, and the limit of their images. */
export function workerHost(storage: WorkerStorage): DenoHost {
  return new DenoHost({ files: workerFiles(storage), images: new Images(storage) });
}
