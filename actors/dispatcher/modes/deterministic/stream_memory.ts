/** What is remembered of streams without jobs: its keys, their owners, and the bytes it counts for. */
import type { StreamReaders, StreamRun } from "../../state/entities.ts";

/** Bytes that an entry counts for, besides its texts, which take up to two bytes a character. */
const ENTRY_BYTES = 256;
/** Bytes that a consumer's finished repetition counts for. */
export const REPETITION_BYTES = 32;

/** The key of a stream's readers, or of those that were one consumer of it. */
export function readersKey(stream: string, consumerIndex: number | null): string {
  return `${consumerIndex ?? ""}/${stream}`;
}

/** What the readers of a stream count for. */
export function bytesOfReaders(key: string, { restored }: StreamReaders): number {
  return entryBytes([key, restored?.name ?? ""]);
}

/** What a run counts for. */
export function bytesOfRun(stream: string, { runId, past, passed }: StreamRun): number {
  const jobs = passed.map(({ jobName, repetitions }) =>
    entryBytes([jobName]) + Object.keys(repetitions).length * REPETITION_BYTES
  );
  return jobs.reduce((sum, bytes) => sum + bytes, entryBytes([stream, runId, ...past]));
}

/** What an entry with these texts counts for. */
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
