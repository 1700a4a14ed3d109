/** Lines of a process's output. */

/** UTF-8 bytes as lines; an unterminated last line is dropped, since its writer died within it. */
export class LineStream implements TransformStream<Uint8Array<ArrayBuffer>, string> {
  readonly readable: ReadableStream<string>;
  readonly writable: WritableStream<Uint8Array<ArrayBuffer>>;

  constructor() {
    const decoder = new TextDecoderStream();
    let rest = "";
    const lines = new TransformStream<string, string>({
      transform(text, controller) {
        const parts = (rest + text).split("\n");
        rest = parts.pop()!;
        for (const part of parts) controller.enqueue(part);
      },
    });
    this.writable = decoder.writable;
    this.readable = decoder.readable.pipeThrough(lines);
  }
}
