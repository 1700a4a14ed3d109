/**
 * A custom sharding policy: the first worker, on a faster machine, reads two files of three.
 *
 *     deno run -P examples/sharding_policy.ts
 *
 * Such policies need the list of workers: a `LocalCluster` has it; `deno task dispatcher` takes it from `--workers`.
 */
import { Dataset, LocalCluster, shardingPolicy } from "../mod.ts";

const SPEEDS = [2, 1];

const folder = await Deno.makeTempDir();
try {
  for (let file = 0; file < 9; file++) {
    const lines = Array.from({ length: 100 }, (_, line) => `line ${line} of file ${file}`);
    await Deno.writeTextFile(`${folder}/${file}.txt`, lines.join("\n"));
  }
  await using cluster = await LocalCluster.start({ workers: SPEEDS.length });

  // Every worker calls it with its own index. It is sent there, so what it uses must be captures.
  const bySpeed = shardingPolicy("by speed", {
    shard(files, { index, speeds, Dataset }) {
      const owners = speeds.flatMap((speed, worker) => Array.from({ length: speed }, () => worker));
      const mine = (files as Dataset<string>)
        .enumerate()
        .filter(([file]) => owners[file % owners.length] === index)
        .map(([, path]) => path);
      return Dataset.textLines(mine)
        .map((line, { worker }) => `${worker}: ${line}`, { captures: { worker: index } });
    },
    captures: { speeds: SPEEDS },
  });

  const files = Dataset.listFiles(`${folder}/*.txt`, { shuffle: false });
  const lines = new Set<string>();
  const perWorker = SPEEDS.map(() => 0);
  for await (const line of files.distribute({ service: cluster, processingMode: bySpeed })) {
    const [worker, text] = line.split(": ");
    perWorker[Number(worker)]!++;
    lines.add(text!);
  }
  console.log(`lines by worker: ${perWorker.join(" and ")}; ${lines.size} different ones`);
} finally {
  await Deno.remove(folder, { recursive: true });
}
