/**
 * The streams between two processes, with both ends in this one: system pipes through two other
 * processes, and slot files in a folder.
 *
 * @module
 */
import type { ProcessStreams } from "../../transport/process/streams.ts";
import { streamReader, streamWriter } from "../../platform/process/pipes.ts";
import { readableSlots, writableSlots } from "../../platform/process/slot_files.ts";
import { SlotFolder } from "../../platform/process/slot_folder.ts";

/** Streams with both ends in this process. */
export class ProcessPipes implements AsyncDisposable {
  /** From the near end to the far one. */
  readonly #down = relay();
  readonly #up = relay();
  readonly #folder = new SlotFolder();

  near(): ProcessStreams {
    return {
      incoming: streamReader(this.#up.stdout),
      outgoing: streamWriter(this.#down.stdin),
      incomingSlots: readableSlots(this.#folder.incoming),
      outgoingSlots: writableSlots(this.#folder.outgoing),
    };
  }

  far(): ProcessStreams {
    return {
      incoming: streamReader(this.#down.stdout),
      outgoing: streamWriter(this.#up.stdin),
      incomingSlots: readableSlots(this.#folder.outgoing),
      outgoingSlots: writableSlots(this.#folder.incoming),
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
    this.#folder.remove();
  }
}

/** A process that forwards what it reads. */
function relay(): Deno.ChildProcess {
  const args = ["-c", "exec cat"];
  return new Deno.Command("sh", { args, stdin: "piped", stdout: "piped" }).spawn();
}
