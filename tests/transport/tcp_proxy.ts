/** A proxy that tests can cut or stall: it is between two ends of a TCP connection. */

/** Forwards connections to a port of this machine. */
export class TcpProxy implements AsyncDisposable {
  readonly port: number;
  readonly #listener: Deno.TcpListener;
  readonly #connections = new Set<Deno.TcpConn>();
  readonly #loops: Promise<void>[] = [];
  #held: Promise<void> | undefined;
  #letGo = () => {};

  constructor(targetPort: number) {
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    this.port = this.#listener.addr.port;
    this.#loops.push(this.#accept(targetPort));
  }

  /** Breaks all connections without a message of the protocol above. */
  cut(): void {
    for (const connection of this.#connections) close(connection);
    this.#connections.clear();
    this.release();
  }

  /** Forwards nothing any more, like a broken wire: both ends stay open. */
  hold(): void {
    this.#held = new Promise((resolve) => this.#letGo = resolve);
  }

  /** Forwards again. */
  release(): void {
    this.#held = undefined;
    this.#letGo();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    this.cut();
    await Promise.all(this.#loops);
  }

  async #accept(targetPort: number): Promise<void> {
    for await (const near of this.#listener) {
      try {
        const far = await Deno.connect({ hostname: "127.0.0.1", port: targetPort });
        this.#connections.add(near).add(far);
        this.#loops.push(this.#forward(near, far), this.#forward(far, near));
      } catch {
        close(near);
      }
    }
  }

  async #forward(source: Deno.TcpConn, target: Deno.TcpConn): Promise<void> {
    const buffer = new Uint8Array(64 * 1024);
    try {
      for (;;) {
        const count = await source.read(buffer);
        await this.#held;
        if (count === null) break;
        for (let done = 0; done < count;) done += await target.write(buffer.subarray(done, count));
      }
    } catch {
      // Cut.
    }
    close(source);
    close(target);
  }
}

function close(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch {
    // Closed already.
  }
}
