/** The interface of a pool of Python processes, which may be owned by another thread. */

/** The interpreter, unless a program names another one. */
export const PYTHON = "python3";

/** Calls of one function that are sent together. */
export interface PythonBatch {
  readonly file: string;
  readonly name: string;
  /** An encoded message with the captures, and with the arguments and the seed of each call. */
  readonly calls: Uint8Array;
}

export interface PythonPool {
  /** Limit of the bytes of {@linkcode PythonBatch.calls}. Default: none. */
  readonly bytesMax?: number;
  /**
   * Resolves to an encoded message with the outcome of each call.
   * @throws {LeatError} if no call has an outcome. Made one by one, the calls may have some.
   */
  run(batch: PythonBatch): Promise<Uint8Array>;
  /** Rejects open calls, and ends the processes that run them. */
  close(): void;
}
