/** Far files of a confined pipeline whose host process dies while they are open. */
import { LeatError } from "../../../core/error.ts";
import { HOST_GONE } from "../../../platform/sandbox/edge.ts";
import { ConfinedHost, type OpenedFile } from "../../../platform/sandbox/host/confined_host.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";

const PATH = "s3://bucket/shard.tar";

/** A host process that dies when told to; the next one opens what `contents` says. */
class DyingHost {
  contents: Omit<OpenedFile, "file"> = { sizeBytes: 8, tag: '"one"' };
  readonly asked: string[] = [];
  /** How many more reads it dies of. */
  deaths = 0;
  #files = new Set<number>();
  #last = 0;

  readonly ask = async (method: string, args: unknown): Promise<unknown> => {
    await Promise.resolve();
    this.asked.push(method);
    switch (method) {
      case "open":
        this.#files.add(++this.#last);
        return { file: this.#last, ...this.contents };
      case "read": {
        if (this.deaths-- > 0) this.#files.clear();
        if (!this.#files.has((args as { file: number }).file)) throw gone();
        return Uint8Array.of(7);
      }
      default:
        this.#files.delete(args as number);
        return null;
    }
  };

  get open(): number {
    return this.#files.size;
  }
}

function gone(): LeatError {
  return new LeatError("unavailable", "It ended by SIGSEGV", { details: { reason: HOST_GONE } });
}

function opened(host: DyingHost) {
  const refuse = () => Promise.reject(new Error("nothing is imported or called"));
  return new ConfinedHost(host.ask, refuse, undefined as never, [], 0).files.open(PATH);
}

Deno.test("a far file of a confined pipeline is opened again once if its host process dies", async () => {
  const host = new DyingHost();
  const file = await opened(host);
  host.deaths = 1;
  const reads = [1, 2, 3].map((offset) => file.read(new Uint8Array(1), offset));
  assertEquals(await Promise.all(reads), [1, 1, 1]);
  assertEquals(host.asked.filter((method) => method === "open").length, 2);
  file.close();
  await assertRejects(async () => await file.read(new Uint8Array(1), 0), LeatError);
  assertEquals([host.open, host.asked.filter((method) => method === "open").length], [0, 2]);
});

Deno.test("a far file that has changed when it is opened again is not read further", async () => {
  const changes = [{ sizeBytes: 9, tag: '"one"' }, { sizeBytes: 8, tag: '"two"' }];
  for (const contents of changes) {
    const host = new DyingHost();
    const file = await opened(host);
    host.contents = contents;
    host.deaths = 1;
    const read = Promise.resolve(file.read(new Uint8Array(1), 0));
    const { code, message } = await assertRejects(() => read, LeatError) as LeatError;
    assertEquals([code, host.open], ["failed_precondition", 0]);
    assertStringIncludes(message, `${PATH} further`);
  }
});

Deno.test("a far file whose host process always dies, or whose storage names no contents, fails with that", async () => {
  for (const [tag, deaths, reads] of [['"one"', 9, 3], [undefined, 1, 1]] as const) {
    const host = new DyingHost();
    host.contents = { sizeBytes: 8, tag };
    const file = await opened(host);
    host.deaths = deaths;
    const read = Promise.resolve(file.read(new Uint8Array(1), 0));
    const { message } = await assertRejects(() => read, LeatError) as LeatError;
    assertEquals(message, "It ended by SIGSEGV");
    assertEquals(host.asked.filter((method) => method === "read").length, reads);
  }
});
