/**
 * Streams are remembered even without jobs. Here: the keys, their owners, and the bytes counted.
 */
import type { StreamReaders, StreamRun } from "../../state/entities.ts";

/** Bytes counted for an entry, in addition to two for each character of its texts. */
const ENTRY_BYTES = 256;
/** Bytes counted for a consumer's finished repetition. */
export const REPETITION_BYTES = 32;

/** The key of a stream's readers, or of the readers with one consumer index. */
export function readersKey(stream: string, consumerIndex: number | null): string {
  return `${consumerIndex ?? ""}/${stream}`;
}

/** Bytes counted for the readers of a stream. */
export function bytesOfReaders(key: string, { restored, begun = "" }: StreamReaders): number {
  return entryBytes([key, restored?.name ?? "", String(begun)]);
}

/** Bytes counted for a run. */
export function bytesOfRun(stream: string, { runId, past, passed }: StreamRun): number {
  const jobs = passed.map(({ jobName, repetitions }) =>
    entryBytes([jobName]) + Object.keys(repetitions).length * REPETITION_BYTES
  );
  return jobs.reduce((sum, bytes) => sum + bytes, entryBytes([stream, runId, ...past]));
}

/** Bytes counted for an entry with these texts. */
export function entryBytes(texts: readonly string[]): number {
  return texts.reduce((sum, { length }) => sum + 2 * length, ENTRY_BYTES);
}

/** The owner of a stream, given its name or the key of its readers. */
export function ownerOfStream(key: string): string {
  try {
    return String((JSON.parse(key.slice(key.indexOf("["))) as readonly unknown[])[0]);
  } catch {
    return "";
  }
}
