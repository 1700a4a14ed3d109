/** Both ends of the pipes that carry a process's standard input and output. */
import type { PipeReader, PipeWriter } from "../../transport/process/streams.ts";

/** Limit of the bytes of one read: the capacity of a Linux pipe. */
const READ_BYTES = 64 * 2 ** 10;

/** The reading end of a child's output. Each read reuses the memory of the last. */
export function streamReader(stream: ReadableStream<Uint8Array>): PipeReader {
  const reader = stream.getReader({ mode: "byob" });
  let memory = new ArrayBuffer(READ_BYTES);
  return {
    async read() {
      const { value } = await reader.read(new Uint8Array(memory));
      if (value === undefined || value.length === 0) return undefined;
      memory = value.buffer;
      return value;
    },
    close: () => void reader.cancel().catch(() => {}),
  };
}

/** The writing end of a child's input. */
export function streamWriter(stream: WritableStream<Uint8Array>): PipeWriter {
  const writer = stream.getWriter();
  // The reading end reports a broken pipe.
  writer.closed.catch(() => {});
  return {
    write: (bytes) => writer.write(bytes),
    close: () => void writer.close().catch(() => {}),
  };
}

/** This process's standard input, without the cost of a stream. */
export function standardInput(): PipeReader {
  const buffer = new Uint8Array(READ_BYTES);
  return {
    async read() {
      const count = await Deno.stdin.read(buffer);
      return count === null ? undefined : buffer.subarray(0, count);
    },
    close: () => Deno.stdin.close(),
  };
}

/** This process's standard output. A full pipe blocks the process, which has nothing else to do. */
export function standardOutput(): PipeWriter {
  return {
    write(bytes) {
      for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
    },
    close: () => Deno.stdout.close(),
  };
}
