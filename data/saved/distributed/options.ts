/** Options of `distributedSave()`. */
import { optionsOf } from "../../check.ts";
import type { DistributeOptions } from "../../operators/distribute.ts";

/** Progress of a distributed save. */
export interface DistributedSaveProgress {
  /** Number of splits of the dataset's source that are written. */
  readonly splitsDone: number;
  /** Number of all splits. */
  readonly splitsTotal: number;
  /** Elements written. */
  readonly elements: number;
  /** Bytes written, after compression. */
  readonly sizeBytes: number;
}

/** How a service saves a dataset. */
export interface DistributedSaveOptions extends Pick<DistributeOptions, "token" | "ca"> {
  /** Default: no compression. */
  readonly compression?: "gzip";
  /**
   * Whether to replace a saved dataset, or the unfinished save of another one. If false, both are an
   * error. The old files stay until everything is written. Default false.
   */
  readonly overwrite?: boolean;
  /** Size in bytes after which a new file begins. Default 256 MiB. */
  readonly chunkBytesMax?: number;
  /** Called with the progress, about once a second. */
  readonly onProgress?: (progress: DistributedSaveProgress) => void;
  /**
   * Ends the save. What was written stays, and the next call resumes from there. Readers that wait
   * get `aborted`.
   */
  readonly signal?: AbortSignal;
}

export const distributedSaveOptions = optionsOf<DistributedSaveOptions>("distributedSave", {
  compression: true,
  overwrite: true,
  chunkBytesMax: true,
  onProgress: true,
  signal: true,
  token: true,
  ca: true,
});
