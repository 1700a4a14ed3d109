/** The pipes and files between two processes of one host. */
import type { SlotFile } from "./slots.ts";

export interface PipeReader {
  /** The next bytes, to be used before the next call; `undefined` at the end. */
  read(): Promise<Uint8Array | undefined>;
  close(): void;
}

export interface PipeWriter {
  /** Writes in the order of the calls. Resolves when there is space for more. */
  write(bytes: Uint8Array): void | Promise<void>;
  /** Closes the pipe after the written bytes. */
  close(): void;
}

/** One process's ends of the two pipes and the two slot files between two processes. */
export interface ProcessStreams {
  readonly incoming: PipeReader;
  readonly outgoing: PipeWriter;
  readonly incomingSlots: SlotFile;
  readonly outgoingSlots: SlotFile;
}

/** Writes without waiting. The reading end reports a broken pipe. */
export function writeQuietly(pipe: PipeWriter, bytes: Uint8Array): void {
  try {
    pipe.write(bytes)?.catch(() => {});
  } catch {
    // The reading end reports it.
  }
}

export function closeStreams(streams: ProcessStreams): void {
  streams.incomingSlots.close();
  streams.outgoingSlots.close();
  streams.incoming.close();
  streams.outgoing.close();
}
