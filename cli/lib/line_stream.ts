/** Lines of a process's output. */

interface LineStreamOptions {
  /** Whether an unterminated last line is given, too. Default: it is dropped; its writer died within it. */
  readonly givesRest?: boolean;
}

/** UTF-8 bytes as lines. */
export class LineStream implements TransformStream<Uint8Array<ArrayBuffer>, string> {
  readonly readable: ReadableStream<string>;
  readonly writable: WritableStream<Uint8Array<ArrayBuffer>>;

  constructor({ givesRest = false }: LineStreamOptions = {}) {
    const decoder = new TextDecoderStream();
    let rest = "";
    const lines = new TransformStream<string, string>({
      transform(text, controller) {
        const parts = (rest + text).split("\n");
        rest = parts.pop()!;
        for (const part of parts) controller.enqueue(part);
      },
      flush(controller) {
        if (givesRest && rest !== "") controller.enqueue(rest);
      },
    });
    this.writable = decoder.writable;
    this.readable = decoder.readable.pipeThrough(lines);
  }
}
