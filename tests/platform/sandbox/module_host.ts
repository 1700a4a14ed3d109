/** A host of JavaScript modules, for tests. */

/** Serves texts by their paths, and redirects for a text `to ` with a URL. */
export class ModuleHost implements AsyncDisposable {
  /** Paths, in the order of the requests. */
  readonly asked: string[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor(texts: Readonly<Record<string, string>>) {
    const listen = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
    this.#server = Deno.serve(listen, ({ url }) => {
      const { pathname } = new URL(url);
      this.asked.push(pathname);
      const text = texts[pathname];
      if (text === undefined) return new Response("none", { status: 404 });
      if (text.startsWith("to ")) return Response.redirect(new URL(text.slice(3), url));
      return new Response(text, { headers: { "content-type": "Text/JavaScript; charset=utf-8" } });
    });
  }

  /** With its port. */
  get name(): string {
    return `127.0.0.1:${this.#server.addr.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}
