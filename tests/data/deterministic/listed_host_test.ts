/** Splits that run alone list the folder of their files once for all. */
import { Dataset } from "../../../mod.ts";
import { chainOf } from "../../../data/deterministic/chain.ts";
import { ListedHost } from "../../../data/deterministic/listed_host.ts";
import { openSplit } from "../../../data/deterministic/split_run.ts";
import { listSplitTable } from "../../../data/sharding/splits.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { assertEquals, assertRejects } from "../../assert.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

const FILES = 9;

class CountingHost extends DenoHost {
  lists = 0;

  constructor() {
    super({ threads: false });
    const { list } = this.files;
    this.files.list = (pattern, signal) => {
      this.lists++;
      return list.call(this.files, pattern, signal);
    };
  }
}

Deno.test("splits of one epoch list their folder once, and again after a failure", async () => {
  await using folder = await TempFolder.make();
  const { node } = Dataset.listFiles(`${folder.path}/*.txt`, { shuffle: false });
  const counting = new CountingHost();
  const host = new ListedHost(counting);
  const chain = chainOf(node)!;
  const read = async (index: number, split = { start: index, stop: index + 1 }) => {
    const options = { host, seed: 1n, epoch: 0, index, split, onRemainder: () => {} };
    await using iterator = openSplit(chain, options);
    const { value } = await iterator.next();
    return value;
  };
  await assertRejects(() => read(0), Error, "no file matches");
  for (let i = 0; i < FILES; i++) await Deno.writeTextFile(`${folder.path}/${i}.txt`, "");
  counting.lists = 0;
  const splits = (await listSplitTable(node, host))[0]!;
  const found = await Promise.all(splits.map((split, index) => read(index, split)));
  assertEquals(found, Array.from({ length: FILES }, (_, i) => `${folder.path}/${i}.txt`));
  assertEquals(counting.lists, 1);
});
