/** Disposing an iterator cancels its pending requests to remote storage. */

import { LeatError } from "../../../core/error.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import type { Files, OpenFile } from "../../../data/host.ts";
import { Dataset } from "../../../data/mod.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { StorageFiles } from "../../../platform/storage/storage.ts";
import { assertEquals } from "../../assert.ts";
import { RangeServer } from "../../platform/storage/range_server.ts";
import { turn } from "../lib/collect.ts";
import { splitsOf } from "./running.ts";

/**
 * Storage that never responds for names that begin with "silent", and counts requests and
 * cancellations.
 */
class SilentFiles implements Files {
  readonly asked: string[] = [];
  givenUp = 0;

  open(path: string, signal?: AbortSignal): Promise<OpenFile> {
    return this.#answer(path, signal, {
      sizeBytes: 100,
      read: () => this.#answer("silent bytes", this.#closing.signal, 0),
      close: () => this.#closing.abort(),
    });
  }

  list(pattern: string, signal?: AbortSignal): Promise<string[]> {
    return this.#answer(pattern, signal, [pattern.replace("listed ", "")]);
  }

  readonly #closing = new AbortController();

  #answer<T>(what: string, signal: AbortSignal | undefined, answer: T): Promise<T> {
    this.asked.push(what);
    if (!what.startsWith("silent")) return Promise.resolve(answer);
    return new Promise((_, reject) => {
      signal?.addEventListener("abort", () => {
        this.givenUp++;
        reject(new LeatError("cancelled", "given up"));
      });
    });
  }
}

const listing = (pattern: string) => Dataset.listFiles(pattern, { shuffle: false });

const CASES: Record<string, { dataset: Dataset<unknown>; asked: string[]; split?: true }> = {
  "open": { dataset: Dataset.textLines("silent.txt"), asked: ["silent.txt"] },
  "open of several files": {
    dataset: Dataset.tfRecords(["silent.1", "silent.2"], { numParallelReads: 2 }),
    asked: ["silent.1", "silent.2"],
  },
  "what a format reads first": {
    dataset: Dataset.parquet("footer.parquet"),
    asked: ["footer.parquet", "silent bytes"],
  },
  "a listing": { dataset: listing("silent *"), asked: ["silent *"] },
  "a listing below a source": { dataset: Dataset.csv(listing("silent *")), asked: ["silent *"] },
  "a listing of parts": {
    dataset: Dataset.textLines(listing("silent *")),
    asked: ["silent *"],
    split: true,
  },
};

for (const [name, { dataset, asked, split }] of Object.entries(CASES)) {
  Deno.test(`disposing cancels ${name}, and leaves nothing behind`, async () => {
    const files = new SilentFiles();
    const host = new DenoHost({ files });
    const splits = split ? { splits: splitsOf([0, 1]) } : {};
    const iterator = openIterator(dataset.node, { host, ...splits });
    const pending = iterator.next();
    while (files.asked.length < asked.length) await turn();
    assertEquals(files.asked, asked);
    await iterator.return();
    assertEquals((await pending).done, true);
    assertEquals(files.givenUp, asked.filter((what) => what.startsWith("silent")).length);
    await turn();
  });
}

Deno.test("disposing ends the retries of a far file and of a far listing", async () => {
  await using server = new RangeServer(new Uint8Array(10));
  server.fault = () => new Response("busy", { status: 503 });
  // A wait that does not end would be reported as a leak.
  const files = new StorageFiles({ requests: { backoffMs: 1e9, backoffMsMax: 1e9 } });
  const host = new DenoHost({ files });
  for (const dataset of [Dataset.textLines, Dataset.listFiles]) {
    const before = server.ranges.length;
    const iterator = openIterator(dataset(`${server.origin}/file`).node, { host });
    const pending = iterator.next();
    while (server.ranges.length === before) await turn(1);
    await iterator.return();
    assertEquals((await pending).done, true);
    await turn(1);
    assertEquals(server.ranges.length, before + 1);
  }
});
