/** A proxy to a server on loopback that notes requests, and whose connections break. */

/** Forwards bytes unchanged, both ways. */
export class FaultyWire implements AsyncDisposable {
  /** What clients have sent, by connection. */
  readonly #requests: string[] = [];
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #open = new Set<Deno.Conn>();
  readonly #serving: Promise<void>;
  readonly #passed: Promise<void>[] = [];

  /**
   * @param bytesMax for each connection in order, the last one for all others: how many bytes are
   * returned before it breaks.
   */
  constructor(port: number, bytesMax: readonly number[]) {
    this.#serving = this.#serve(port, bytesMax);
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#listener.addr.port}`;
  }

  /** The `Range` of every request that has one, connection by connection. */
  get ranges(): string[] {
    return this.#requests.flatMap((text) =>
      [...text.matchAll(/^range: (.+)$/gim)].map(([, range]) => range!)
    );
  }

  get connections(): number {
    return this.#requests.length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    for (const end of this.#open) this.#close(end);
    await this.#serving;
    await Promise.all(this.#passed);
  }

  async #serve(port: number, bytesMax: readonly number[]): Promise<void> {
    for await (const near of this.#listener) {
      const number = this.#requests.push("") - 1;
      const count = bytesMax[Math.min(number, bytesMax.length - 1)]!;
      const far = await Deno.connect({ hostname: "127.0.0.1", port });
      this.#open.add(near).add(far);
      const text = new TextDecoder();
      this.#passed.push(
        this.#pass(near, far, Infinity, (bytes) => this.#requests[number] += text.decode(bytes)),
        this.#pass(far, near, count),
      );
    }
  }

  async #pass(
    from: Deno.Conn,
    to: Deno.Conn,
    count: number,
    note?: (bytes: Uint8Array) => void,
  ): Promise<void> {
    const buffer = new Uint8Array(64 * 1024);
    try {
      for (let left = count; left > 0;) {
        const read = await from.read(buffer.subarray(0, Math.min(left, buffer.length)));
        if (read === null) break;
        left -= read;
        note?.(buffer.subarray(0, read));
        for (let at = 0; at < read;) at += await to.write(buffer.subarray(at, read));
      }
    } catch {
      // The other direction has closed them.
    }
    this.#close(from);
    this.#close(to);
  }

  #close(end: Deno.Conn): void {
    if (this.#open.delete(end)) end.close();
  }
}
