/** A log in memory, for dispatchers that need no state after a restart. */
import type { DurableLog, LogContents } from "../../actors/runtime/durable_log.ts";

/** Keeps records in memory. "Durable" means here: until the process ends. */
export class MemoryLog implements DurableLog {
  #snapshot: Uint8Array | undefined;
  #records: Uint8Array[] = [];

  read(): Promise<LogContents> {
    return Promise.resolve({ snapshot: this.#snapshot, records: [...this.#records] });
  }

  append(record: Uint8Array): void {
    this.#records.push(record.slice());
  }

  sync(): Promise<void> {
    return Promise.resolve();
  }

  compact(snapshot: Uint8Array): Promise<void> {
    this.#snapshot = snapshot.slice();
    this.#records = [];
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
