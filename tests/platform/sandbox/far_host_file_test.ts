/** Far files of a confined pipeline whose host process dies while they are open. */
import { LeatError } from "../../../core/error.ts";
import type { Files } from "../../../data/host.ts";
import { HOST_GONE } from "../../../platform/sandbox/edge.ts";
import {
  type AskHost,
  ConfinedHost,
  type OpenedFile,
} from "../../../platform/sandbox/host/confined_host.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { FarRoots } from "../../../platform/sandbox/host/far_roots.ts";
import { HostService } from "../../../platform/sandbox/host/host_service.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { RangeServer } from "../storage/range_server.ts";

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
      case "close":
        this.#files.delete(args as number);
    }
    return null;
  };

  get open(): number {
    return this.#files.size;
  }
}

function gone(): LeatError {
  return new LeatError("unavailable", "It ended by SIGSEGV", { details: { reason: HOST_GONE } });
}

function filesOf(ask: AskHost): Files {
  const refuse = () => Promise.reject(new Error("nothing is imported or called"));
  return new ConfinedHost(ask, refuse, undefined as never, [], 0).files;
}

const opened = (host: DyingHost) => filesOf(host.ask).open(PATH);

/** Reads a file here and there as readers of formats do, and returns the ranges that were requested. */
async function rangesOf(filesFor: (origin: string) => Files): Promise<string[]> {
  await using server = new RangeServer(new Uint8Array(4 * 1024 * 1024));
  const file = await filesFor(server.origin).open(`${server.origin}/file`, undefined, 1_024);
  file.expect?.(2_000_000, 2_400_000);
  for (let at = 2_000_000; at < 2_400_000; at += 100_000) {
    await file.read(new Uint8Array(100_000), at);
  }
  file.close();
  return server.ranges;
}

Deno.test("a far file of a confined pipeline requests the ranges that it requests elsewhere", async () => {
  const confined = await rangesOf((origin) => {
    const service = new HostService(
      new DenoHost(),
      new FarRoots([`${origin}/`]),
      undefined as never,
    );
    return filesOf(async (method, args) => await service.answer({ method, args }));
  });
  assertEquals(confined, await rangesOf(() => new DenoHost().files));
  assertEquals(confined, ["bytes=0-1023", "bytes=2000000-2399999"]);
});

Deno.test("a far file that is opened again expects what it did before", async () => {
  const host = new DyingHost();
  const file = await opened(host);
  file.expect?.(2, 8);
  host.deaths = 1;
  await file.read(new Uint8Array(1), 2);
  assertEquals(host.asked, ["open", "expect", "read", "open", "expect", "read"]);
});

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
