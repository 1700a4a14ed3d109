/** Meters files that are being read: their bytes, the time spent waiting for reads, and the time decoding. */
import type { IteratorContext } from "../../context.ts";
import type { FormatReader } from "../../formats/format_reader.ts";
import type { OpenFile } from "../../host.ts";
import { Stopwatch } from "../../iterators/stopwatch.ts";

/** An open file that adds the bytes read from it to the operator's figures. */
export interface MeteredFile extends OpenFile {
  /** Total time spent waiting for reads, in ms. */
  readonly waitedMs: number;
}

export function meteredFile(file: OpenFile, { host, stats }: IteratorContext): MeteredFile {
  let waitedMs = 0;
  const count = (bytes: number) => {
    stats.received(bytes);
    return bytes;
  };
  const later = async (pending: Promise<number>) => {
    const startedAtMs = host.nowMs();
    try {
      return count(await pending);
    } finally {
      waitedMs += host.nowMs() - startedAtMs;
    }
  };
  return {
    sizeBytes: file.sizeBytes,
    get waitedMs() {
      return waitedMs;
    },
    read(into, offset) {
      const read = file.read(into, offset);
      return read instanceof Promise ? later(read) : count(read);
    },
    expect: (start, stop) => file.expect?.(start, stop),
    close: () => file.close(),
  };
}

/** Wraps a reader of `file`, and adds the times and errors of its steps to the operator's figures. */
export type MeterReader = (reader: FormatReader, file: MeteredFile) => FormatReader;

export function readerMeter({ host, stats }: IteratorContext): MeterReader {
  const watch = new Stopwatch(host, stats);
  let inFlight = 0;
  /** A step decodes when it does not wait for a read. Concurrent steps share the time equally. */
  const later = async (pending: Promise<unknown>, file: MeteredFile) => {
    const startedAtMs = host.nowMs();
    const waitedBefore = file.waitedMs;
    inFlight++;
    try {
      return await pending;
    } catch (error) {
      throw stats.failed(error);
    } finally {
      const waitedMs = file.waitedMs - waitedBefore;
      const spentMs = Math.max(0, host.nowMs() - startedAtMs - waitedMs);
      stats.waited(waitedMs / inFlight);
      stats.spent(spentMs / inFlight);
      inFlight--;
    }
  };
  return (reader, file) => {
    const step = () => reader.step();
    return {
      get disposed() {
        return reader.disposed;
      },
      step() {
        try {
          const result = watch.time(step);
          return result instanceof Promise ? later(result, file) : result;
        } catch (error) {
          throw stats.failed(error);
        }
      },
      save: () => reader.save(),
      close: () => reader.close(),
    };
  };
}
