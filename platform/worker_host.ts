/** The host of a worker's pipelines. */

import { DenoHost } from "./deno_host.ts";
import type { MayFollow } from "./storage/http_files.ts";
import { Images } from "./media/images.ts";
import { workerFiles, type WorkerStorage } from "./storage/storage.ts";

/** A host with the files of a worker's pipelines. For `mayFollow` see {@linkcode MayFollow}. */
export function workerHost(storage: WorkerStorage, mayFollow?: MayFollow): DenoHost {
  return new DenoHost({ files: workerFiles(storage, mayFollow), images: new Images(storage) });
}
