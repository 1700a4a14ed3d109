/** Lines of a process's output. */

interface LineStreamOptions {
  /** Whether to emit an unterminated last line. Default: no, because its writer died while writing it. */
  readonly givesRest?: boolean;
}

/** Splits UTF-8 bytes into lines. */
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
