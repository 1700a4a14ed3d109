/**
 * A small cluster that reads one dataset under a static policy (FILE, DATA, FILE_OR_DATA, HINT): a
 * dispatcher with a list of workers, these workers, an unlisted one, and one or two clients of one
 * job.
 *
 * Promises: each listed worker produces only its own share, in order, at most once per life. If no
 * client crashes, all shares arrive. Once the cluster has healed, every client reaches the end.
 */
import { Dataset } from "../../data/dataset.ts";
import { SHARD_HINT, ShardingPolicy } from "../../data/sharding/sharding_policy.ts";
import { Violations } from "../checkers/checker.ts";
import { SharesChecker } from "../checkers/shares.ts";
import { SimCluster } from "../engine/cluster.ts";
import type { SimRandom } from "../engine/random.ts";
import { withFailures } from "../checkers/failing_elements.ts";
import { takeAll } from "./lib/reading.ts";
import { bootDispatcher, bootWorker } from "../engine/service.ts";
import { type Trainer, Trainers } from "./lib/trainers.ts";
import { outcomeOf, type RunOptions, type RunOutcome } from "./workload.ts";

/** Names of listed workers. They may contain any characters that addresses do not use. */
const LISTED = ["worker-1", "wörker 2", "worker,3"] as const;
const UNLISTED = "worker-4";
const CLIENTS = ["client-1", "client-2"] as const;

const OUTSTANDING: [number, ...number[]] = [1, 4, 16];

/** Lines of each file: none, one, some. There are at least as many files as workers. */
const FILES: [readonly number[], ...(readonly number[])[]] = [
  [5, 1, 0, 7, 3],
  [4, 4, 4],
  [0, 12, 1, 1],
];
/** Numbers of elements of a source without files: none, one, fewer than workers, more. */
const ELEMENTS: [number, ...number[]] = [0, 1, 2, 25];
const FOLDER = "/data";
const LINES_MAX = 100;

export async function runStatic(options: RunOptions): Promise<RunOutcome> {
  using run = new StaticRun(options);
  return await outcomeOf(run, ({ shares }) => shares.delivered);
}

/** The dataset that is read, and each worker's share by the definition of the policy. */
interface Plan {
  readonly mode: ShardingPolicy;
  readonly dataset: () => Dataset<number>;
  /** Number of lines of each file, if there are files. */
  readonly files: readonly number[];
  readonly shares: readonly (readonly number[])[];
  /** Whether each worker runs the whole pipeline, so that an element that fails does so on all of them. */
  readonly runsWhole: boolean;
}

class StaticRun implements Disposable {
  readonly violations = new Violations();
  readonly cluster: SimCluster;
  readonly shares: SharesChecker;
  readonly #plan: Plan;
  readonly #isFailing: boolean;
  readonly #trainers: Trainers;

  constructor(options: RunOptions) {
    this.cluster = new SimCluster(options);
    const rng = this.cluster.random.fork("static");
    const workers = LISTED.slice(0, 1 + rng.int(LISTED.length));
    this.#plan = drawPlan(rng, workers.length);
    this.#isFailing = options.failing ?? false;
    const clients = CLIENTS.slice(0, 1 + rng.int(CLIENTS.length));
    for (const [file, lines] of this.#plan.files.entries()) {
      const text = Array.from({ length: lines }, (_, line) => `${file * LINES_MAX + line}\n`);
      this.cluster.files.put(`${FOLDER}/${file}.txt`, new TextEncoder().encode(text.join("")));
    }
    this.shares = new SharesChecker(this.#plan.shares, this.violations.by("shares"));
    const listed = [...workers, UNLISTED];
    this.#trainers = new Trainers({
      cluster: this.cluster,
      violations: this.violations,
      run: options,
      dispatcher: bootDispatcher({ workers }),
      workers,
      spared: [UNLISTED],
      worker: (settings, name) => {
        const share = listed.indexOf(name);
        const boot = bootWorker({ name, ...settings });
        return (node) => {
          node.system.inspect(this.shares.life(share));
          boot(node);
        };
      },
      clients,
      train: (trainer) => this.#train(trainer),
      processingMode: this.#plan.mode,
      maxOutstandingRequests: rng.pick(OUTSTANDING),
    });
  }

  async toTheEnd(): Promise<void> {
    await this.#trainers.toTheEnd();
    if (this.#trainers.haveLived) this.shares.expectAll();
  }

  [Symbol.dispose](): void {
    this.#trainers[Symbol.dispose]();
  }

  async #train({ node, who, open, step }: Trainer): Promise<void> {
    node.system.inspect(this.shares.consumer(who));
    const { dataset, runsWhole } = this.#plan;
    const make = () => this.#isFailing && !runsWhole ? withFailures(dataset()) : dataset();
    await takeAll(open(make), async (element) => {
      this.shares.took(element as number, who);
      await step(this.shares.delivered);
    });
  }
}

function drawPlan(rng: SimRandom, count: number): Plan {
  const mode = rng.pick(["FILE", "DATA", "FILE_OR_DATA", "HINT"]) as ShardingPolicy;
  const readsFiles = mode === ShardingPolicy.FILE || rng.chance(0.5);
  const lines = rng.pick(FILES);
  const elements = rng.pick(ELEMENTS);
  const isHinted = mode === ShardingPolicy.HINT;
  const dataset = () => {
    const source = readsFiles
      ? Dataset.textLines(Dataset.listFiles(`${FOLDER}/*.txt`, { shuffle: false })).map((line) =>
        Number(line)
      )
      : Dataset.range(elements);
    return isHinted ? source.shard(SHARD_HINT, SHARD_HINT) : source;
  };
  const files = lines.map((length, file) =>
    Array.from({ length }, (_, line) => file * LINES_MAX + line)
  );
  const all = readsFiles ? files.flat() : Array.from({ length: elements }, (_, i) => i);
  const isByFile = readsFiles &&
    (mode === ShardingPolicy.FILE || mode === ShardingPolicy.FILE_OR_DATA);
  const shares = Array.from(
    { length: count },
    (_, index) =>
      isByFile
        ? files.filter((_, file) => file % count === index).flat()
        : all.filter((_, position) => position % count === index),
  );
  const runsWhole = !isByFile && !isHinted;
  return { mode, dataset, files: readsFiles ? lines : [], shares, runsWhole };
}
