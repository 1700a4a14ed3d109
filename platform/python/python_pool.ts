/** The interface of a pool of Python processes, which may be owned by another thread. */

/** The interpreter, unless a program names another one. */
export const PYTHON = "python3";

/** Calls of one function that are sent together. */
export interface PythonBatch {
  readonly file: string;
  readonly name: string;
  /** An encoded message: the captures, and the arguments and seed of each call. */
  readonly calls: Uint8Array;
}

export interface PythonPool {
  /** Most bytes of several calls together. Default: any number. */
  readonly bytesMax?: number;
  /**
   * Resolves to an encoded message: the outcome of each call.
   * @throws {LeatError} `permission_denied`, and others. `details.reason` is {@linkcode PYTHON_DIED}
   * if the process ended during these calls.
   */
  run(batch: PythonBatch): Promise<Uint8Array>;
  /** Rejects open calls, and ends the processes that compute them. */
  close(): void;
}

/** The reason of calls that failed together and may succeed one by one. */
export const PYTHON_DIED = "python_died";
