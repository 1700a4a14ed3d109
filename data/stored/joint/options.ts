/**
 * What users say of how a service saves a dataset.
 */
import type { DistributeOptions } from "../../operators/distribute.ts";

/** How far a service is with saving. */
export interface DistributedSaveProgress {
  /** Splits of the dataset's source that are written, … */
  readonly splitsDone: number;
  /** … of how many. */
  readonly splitsTotal: number;
  readonly elements: number;
  /** Bytes written, compressed if they are. */
  readonly sizeBytes: number;
}

/** How a service saves a dataset. */
export interface DistributedSaveOptions extends Pick<DistributeOptions, "token" | "ca"> {
  /** Not compressed by default. */
  readonly compression?: "gzip";
  /**
   * Whether what is there is replaced, a saved dataset or the unfinished save of another one; otherwise
   * that is refused. What is there stays until all is written. Default false.
   */
  readonly overwrite?: boolean;
  /** A file that has grown to so many bytes is followed by another. Default 256 MiB. */
  readonly chunkBytesMax?: number;
  /** Called when there is progress, about once a second. */
  readonly onProgress?: (progress: DistributedSaveProgress) => void;
  /** Ends the save. What was written stays, and calling again goes on with it. */
  readonly signal?: AbortSignal;
}
