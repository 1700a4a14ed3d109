/**
 * The streams between two processes, with both ends in this one: system pipes through two other
 * processes, and slot files in a folder.
 */
import type { PipeWriter, ProcessStreams } from "../../transport/process/streams.ts";
import type { SlotFile } from "../../transport/process/slots.ts";
import { streamReader, streamWriter } from "../../platform/process/pipes.ts";
import { readableSlots, writableSlots } from "../../platform/process/slot_files.ts";
import { SlotFolder } from "../../platform/process/slot_folder.ts";

/** Streams with both ends in this process. */
export class ProcessPipes implements AsyncDisposable {
  /** From the near end to the far one. */
  readonly #down = relay();
  readonly #up = relay();
  readonly #folder = new SlotFolder();
  readonly #begun: Promise<void>[] = [];

  near(): ProcessStreams {
    return {
      incoming: streamReader(this.#up.stdout),
      outgoing: this.#noted(streamWriter(this.#down.stdin)),
      incomingSlots: this.#notedSlots(readableSlots(this.#folder.incoming)),
      outgoingSlots: this.#notedSlots(writableSlots(this.#folder.outgoing)),
    };
  }

  far(): ProcessStreams {
    return {
      incoming: streamReader(this.#down.stdout),
      outgoing: this.#noted(streamWriter(this.#up.stdin)),
      incomingSlots: this.#notedSlots(readableSlots(this.#folder.outgoing)),
      outgoingSlots: this.#notedSlots(writableSlots(this.#folder.incoming)),
    };
  }

  /** Ends both pipes, with everything in them. */
  cut(): void {
    for (const relay of [this.#down, this.#up]) {
      try {
        relay.kill("SIGKILL");
      } catch {
        // It has ended.
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await Promise.all([this.#down.status, this.#up.status]);
    // A link that is cut leaves the call that it is in to end by itself.
    await Promise.allSettled(this.#begun);
    this.#folder.remove();
  }

  #noted(pipe: PipeWriter): PipeWriter {
    return { write: (bytes) => this.#note(pipe.write(bytes)), close: () => pipe.close() };
  }

  #notedSlots(file: SlotFile): SlotFile {
    return {
      write: (slot, blocks) => this.#note(file.write(slot, blocks)),
      read: (slot, into) => this.#note(file.read(slot, into)),
      close: () => file.close(),
    };
  }

  #note(call: void | Promise<void>): void | Promise<void> {
    if (call !== undefined) this.#begun.push(call);
    return call;
  }
}

/** A process that forwards what it reads. */
function relay(): Deno.ChildProcess {
  const args = ["-c", "exec cat"];
  return new Deno.Command("sh", { args, stdin: "piped", stdout: "piped" }).spawn();
}
