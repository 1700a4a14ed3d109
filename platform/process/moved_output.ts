/** Standard output for messages alone, whatever the code of pipelines and its threads print. */
import { LeatError } from "../../core/error.ts";
import type { PipeWriter } from "../../transport/process/streams.ts";
import type { KernelCalls } from "../sandbox/guards/kernel_calls.ts";

/** Moves standard output, as `KernelCalls.moveOutput` says. A full pipe blocks the calling thread. */
export function movedOutput(kernel: KernelCalls): PipeWriter {
  const fd = kernel.moveOutput();
  let isClosed = false;
  return {
    write(bytes) {
      // Another file may have the number of a closed descriptor.
      if (isClosed) throw new LeatError("cancelled", "The link was closed");
      kernel.write(fd, bytes as Uint8Array<ArrayBuffer>);
    },
    close() {
      if (!isClosed) kernel.close(fd);
      isClosed = true;
    },
  };
}
