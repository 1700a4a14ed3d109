/** A host with threads of its own, for tests. */
import { DenoHost } from "../../../platform/deno_host.ts";
import { FunctionPool } from "../../../platform/threads/function_pool.ts";

/** Its threads end with it. */
export class ThreadsHost extends DenoHost implements AsyncDisposable {
  override readonly threads: FunctionPool;

  constructor(count: number) {
    super({ threads: false });
    this.threads = new FunctionPool(count);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.threads.close();
  }
}
