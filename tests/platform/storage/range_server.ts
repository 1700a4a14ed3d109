/** A web server on loopback that supports ranges, with configurable failures. */

/** The answer instead of the requested bytes; undefined: the bytes. */
export type Fault = (
  request: Request,
  number: number,
) => Response | Promise<Response> | undefined;

/** Serves `contents` under every path. */
export class RangeServer implements AsyncDisposable {
  contents: Uint8Array<ArrayBuffer>;
  etag = '"first"';
  fault: Fault = () => undefined;
  /** The `Range` of every request, in order. */
  readonly ranges: string[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor(contents: Uint8Array<ArrayBuffer>) {
    this.contents = contents;
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {} },
      async (request) => {
        this.ranges.push(request.headers.get("range") ?? "");
        return await this.fault(request, this.ranges.length) ?? this.answer(request);
      },
    );
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** The bytes of all requests together. */
  get requestedBytes(): number {
    return this.ranges.reduce((sum, range) => {
      const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(range)!;
      return sum + Number(last) + 1 - Number(first);
    }, 0);
  }

  /** The answer of a working server. */
  answer(request: Request): Response {
    const size = this.contents.length;
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get("range") ?? "") ?? [];
    const headers = { etag: this.etag };
    if (first === undefined) return new Response(this.contents, { headers });
    const start = Number(first), stop = Math.min(Number(last) + 1, size);
    if (start >= size) {
      const range = { "content-range": `bytes */${size}` };
      return new Response("no such range", { status: 416, headers: { ...headers, ...range } });
    }
    const range = { "content-range": `bytes ${start}-${stop - 1}/${size}` };
    const part = this.contents.slice(start, stop);
    return new Response(part, { status: 206, headers: { ...headers, ...range } });
  }

  /**
   * The right answer, cut after the first `count` bytes of its body; then the connection breaks, or
   * stalls.
   */
  cut(request: Request, count: number, then: "break" | "silence" = "break"): Response {
    const { body, status, headers } = this.answer(request);
    let left = count;
    const part = body!.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          if (left > 0) controller.enqueue(chunk.subarray(0, left));
          left -= chunk.length;
          if (left > 0) return undefined;
          if (then === "silence") return new Promise<void>(() => {});
          return controller.terminate();
        },
      }),
    );
    const [, first, last] = /(\d+)-(\d+)/.exec(headers.get("content-range")!)!;
    headers.set("content-length", String(Number(last) - Number(first) + 1));
    return new Response(part, { status, headers });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

/** Resolves with an answer once the client has disconnected. */
export function silence(request: Request): Promise<Response> {
  return new Promise((resolve) => {
    const { signal } = request;
    if (signal.aborted) resolve(new Response());
    signal.addEventListener("abort", () => resolve(new Response()), { once: true });
  });
}

/** Bytes that differ between offsets. */
export function noise(count: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(count);
  for (let i = 0, state = 1; i < count; i++) {
    state = Math.imul(state, 48271) + 11 | 0;
    bytes[i] = state >>> 16;
  }
  return bytes;
}
