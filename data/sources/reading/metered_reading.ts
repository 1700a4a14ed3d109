/**
 * Meters files that are being read: number of bytes, time waiting for them, and time decoding them.
 */
import type { IteratorContext } from "../../context.ts";
import type { FormatReader } from "../../formats/format_reader.ts";
import type { OpenFile } from "../../host.ts";
import type { OperatorMeter } from "../../iterators/stats.ts";
import { Stopwatch } from "../../iterators/stopwatch.ts";

/** An open file that counts the bytes read of it. */
export class MeteredFile implements OpenFile {
  /** How long reads were waited for, in ms. */
  waitedMs = 0;
  readonly #file: OpenFile;
  readonly #context: IteratorContext;

  constructor(file: OpenFile, context: IteratorContext) {
    this.#file = file;
    this.#context = context;
  }

  get sizeBytes(): number {
    return this.#file.sizeBytes;
  }

  read(into: Uint8Array, offset: number): number | Promise<number> {
    const read = this.#file.read(into, offset);
    return read instanceof Promise ? this.#later(read) : this.#count(read);
  }

  close(): void {
    this.#file.close();
  }

  async #later(pending: Promise<number>): Promise<number> {
    const { host } = this.#context;
    const startedAtMs = host.nowMs();
    try {
      return this.#count(await pending);
    } finally {
      this.waitedMs += host.nowMs() - startedAtMs;
    }
  }

  #count(bytes: number): number {
    this.#context.stats.received(bytes);
    return bytes;
  }
}

/** The steps of one source's readers. */
export class ReadingMeter {
  readonly #context: IteratorContext;
  readonly #stats: OperatorMeter;
  readonly #watch: Stopwatch;
  #inFlight = 0;

  constructor(context: IteratorContext) {
    this.#context = context;
    this.#stats = context.stats;
    this.#watch = new Stopwatch(context.host, context.stats);
  }

  /** The same reader, metered. `file` is the file that it reads. */
  of(reader: FormatReader, file: MeteredFile): FormatReader {
    const step = () => reader.step();
    return {
      get disposed() {
        return reader.disposed;
      },
      step: () => this.#step(step, file),
      save: () => reader.save(),
      close: () => reader.close(),
    };
  }

  #step(step: () => unknown, file: MeteredFile): unknown {
    try {
      const result = this.#watch.time(step);
      return result instanceof Promise ? this.#later(result, file) : result;
    } catch (error) {
      throw this.#stats.failed(error);
    }
  }

  /** The time of a step without its reads is decoding. Concurrent steps share the time. */
  async #later(pending: Promise<unknown>, file: MeteredFile): Promise<unknown> {
    const { host } = this.#context;
    const startedAtMs = host.nowMs();
    const waitedBefore = file.waitedMs;
    this.#inFlight++;
    try {
      return await pending;
    } catch (error) {
      throw this.#stats.failed(error);
    } finally {
      const waitedMs = file.waitedMs - waitedBefore;
      const spentMs = Math.max(0, host.nowMs() - startedAtMs - waitedMs);
      this.#stats.waited(waitedMs / this.#inFlight);
      this.#stats.spent(spentMs / this.#inFlight);
      this.#inFlight--;
    }
  }
}
