/**
 * A small cluster that saves a dataset together (`distributedSave`): a dispatcher, three workers, and a
 * program that asks for it, and asks again when it has crashed.
 *
 * What must hold: whatever happens, once the cluster has healed the folder holds the canonical stream of
 * the dataset, each element once and in its place.
 *
 * @module
 */
import { saveByService } from "../actors/client/saving.ts";
import { dispatcherAt } from "../actors/dispatcher/protocol.ts";
import { LeatError } from "../core/error.ts";
import { Dataset } from "../data/dataset.ts";
import { openIterator } from "../data/dataset_iterator.ts";
import { Violations } from "./checkers/checker.ts";
import { SimCluster } from "./cluster.ts";
import { Crashes } from "./crashes.ts";
import type { SimNode } from "./node.ts";
import { type PipelineName, pipelineOf, streamOf } from "./ordered_pipelines.ts";
import { textOf } from "./reference_stream.ts";
import { bootDispatcher, bootWorker, DISPATCHER_NODE } from "./service.ts";
import {
  outcomeOf,
  type RunOptions,
  type RunOutcome,
  runThroughTrouble,
  runUntil,
} from "./workload.ts";

const WORKERS = ["worker-1", "worker-2", "worker-3"] as const;
const CLIENT = "client";
const NODES = { dispatcher: [DISPATCHER_NODE], worker: WORKERS, client: [CLIENT] } as const;
const FOLDER = "/saved";

/** A function that fails would end the save. */
const PIPELINES: [PipelineName, ...PipelineName[]] = [
  "luck, a filter and remainders",
  "whole batches",
  "mostly empty splits",
  "no elements",
];

/** Timings that the actors offer to be set. */
const WORKER_HEARTBEAT_MS = 500;
const TIMINGS = { refreshMs: 200, firstAnswerTimeoutMs: 60_000 };

/** Runs one seed. */
export async function runSaving(options: RunOptions): Promise<RunOutcome> {
  const pipeline = new SimCluster({ seed: options.seed }).random.fork("pipeline").pick(PIPELINES);
  const run = new SavingRun(options, pipeline, await streamOf(pipeline, 1));
  return await outcomeOf(run, ({ delivered }) => delivered);
}

class SavingRun {
  readonly violations = new Violations();
  readonly cluster: SimCluster;
  /** Elements that were found in the folder. */
  delivered = 0;
  readonly #pipeline: PipelineName;
  readonly #wanted: readonly string[];
  readonly #crashes: Crashes;
  #isSaved = false;

  constructor(
    { seed, faults, readable = false, crashes = [], crashPoint }: RunOptions,
    pipeline: PipelineName,
    wanted: readonly string[],
  ) {
    this.#pipeline = pipeline;
    this.#wanted = wanted;
    this.cluster = new SimCluster({ seed, faults, readable });
    this.cluster.addNode(DISPATCHER_NODE, bootDispatcher());
    for (const name of WORKERS) {
      this.cluster.addNode(name, bootWorker({ heartbeatMs: WORKER_HEARTBEAT_MS }));
    }
    this.cluster.addNode(CLIENT, (node) => this.#bootClient(node));
    this.#crashes = new Crashes(this.cluster, {
      nodes: NODES,
      roles: crashes,
      point: crashPoint,
      onCrash: ({ name }) => {
        if (name === CLIENT) this.#isSaved = false;
      },
    });
  }

  async toTheEnd(): Promise<void> {
    await runThroughTrouble(this.cluster, this.#crashes, () => this.#isSaved);
    await this.#expectStream();
  }

  #bootClient(node: SimNode): void {
    const who = `${node.name} (life ${node.lives})`;
    this.#save(node).then(() => this.#isSaved = true, (error) => {
      const { code, message } = LeatError.from(error);
      // An earlier life of it had asked for it, and it has become whole.
      if (code === "already_exists" && node.lives > 1) this.#isSaved = true;
      else this.violations.by("training").add(`${who} failed: ${message}`);
    });
  }

  async #save(node: SimNode): Promise<void> {
    const home = {
      system: node.system,
      dispatcher: dispatcherAt(DISPATCHER_NODE),
      timings: TIMINGS,
      release: () => {},
    };
    const save = { folder: FOLDER, overwrite: false };
    await saveByService(pipelineOf(this.#pipeline).node, "simulated", { save }, () => home);
  }

  /** Reads the folder on a node that does not crash any more. */
  async #expectStream(): Promise<void> {
    const { host } = this.cluster.node(WORKERS.at(-1)!);
    const found: string[] = [];
    let isRead = false;
    const read = async () => {
      const saved = await Dataset.load(FOLDER, { wait: true });
      const iterator = openIterator(saved.node, { host });
      for (;;) {
        const { done, value } = await iterator.next();
        if (done) return;
        found.push(textOf({ element: value }));
      }
    };
    read().catch((error) => {
      this.violations.by("folder").add(
        `The folder cannot be read: ${LeatError.from(error).message}`,
      );
    }).finally(() => isRead = true);
    await runUntil(this.cluster, () => isRead && this.#crashes.over, "the folder was read");
    this.delivered = found.length;
    const at = this.#wanted.findIndex((text, i) => text !== found[i]);
    if (at < 0 && found.length === this.#wanted.length) return;
    this.violations.by("folder").add(
      `the folder holds ${found.length} elements of ${this.#wanted.length}; first that differs: ` +
        `${at < 0 ? this.#wanted.length : at}`,
    );
  }
}
