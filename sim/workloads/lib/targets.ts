/**
 * Draws which workers the one job of a run wants: some of its workers lack a tag, one serves only clients
 * of its own process, and addresses of some do not answer when the dispatcher dials them.
 */
import type { DispatcherConfig } from "../../../actors/dispatcher/config.ts";
import { dispatcherAt } from "../../../actors/dispatcher/protocol.ts";
import { LeatError } from "../../../core/error.ts";
import type { Violations } from "../../checkers/checker.ts";
import { TargetsChecker, type WorkerTarget } from "../../checkers/targets.ts";
import type { SimCluster } from "../../engine/cluster.ts";
import type { SimNode } from "../../engine/node.ts";
import { DISPATCHER_NODE } from "../../engine/service.ts";
import { runUntil } from "../workload.ts";

/** Share of the runs that draw anything here. */
const PROBABILITY = 1 / 4;
/** The tag that some jobs want. */
export const WANTED_TAG = "quick";
/** The process of a private worker that no client may read. */
const ELSEWHERE = "elsewhere";
/** Time between two looks at the workers, and the longest wait for an answer, in ms. */
const LOOK_MS = 1_000;
const LOOK_TIMEOUT_MS = 60_000;

interface TargetsOptions {
  readonly cluster: SimCluster;
  readonly violations: Violations;
  /** The first of them may serve all clients. */
  readonly workers: readonly string[];
  /** Each is a process of its own. */
  readonly clients: readonly string[];
  /** If clients crash, the private worker serves none, because its elements are lost with its client. */
  readonly clientsCrash: boolean;
}

/** The targets of a run. */
export class Targets {
  readonly #cluster: SimCluster;
  readonly #violations: Violations;
  readonly #isDrawn: boolean;
  /** By the names of workers as the run knows them. */
  readonly #workers = new Map<string, WorkerTarget>();
  /** Their names, by the names of the nodes on which they have started. A moved worker has several. */
  readonly #names = new Map<string, string>();
  /** Workers whose addresses do not answer. */
  readonly #deaf = new Set<string>();
  readonly checker: TargetsChecker;
  /** The parameters of the job. */
  readonly job: { readonly targetTags?: readonly string[] };

  constructor({ cluster, violations, workers, clients, clientsCrash }: TargetsOptions) {
    this.#cluster = cluster;
    this.#violations = violations;
    const rng = cluster.random.fork("targets");
    this.#isDrawn = rng.chance(PROBABILITY);
    const wanted = this.#isDrawn && rng.chance(0.5) ? [WANTED_TAG] : [];
    this.job = this.#isDrawn ? { targetTags: wanted } : {};
    this.checker = new TargetsChecker(violations.by("targets"), wanted, clients);
    if (!this.#isDrawn) return;
    cluster.counters.tally("targets_drawn");
    const process = clientsCrash || rng.chance(0.5) ? ELSEWHERE : clients[0]!;
    for (const [index, name] of workers.entries()) {
      const tags = index === 0 || rng.chance(0.5) ? [WANTED_TAG] : [];
      const isPrivate = index === workers.length - 1;
      this.#workers.set(name, { tags, ...(isPrivate ? { isPrivate, process } : {}) });
      if (!isPrivate && rng.chance(0.5)) this.#deaf.add(name);
    }
  }

  /** The settings of the dispatcher. */
  get dispatcher(): Pick<DispatcherConfig, "dialWorker" | "isNodeAddress"> {
    if (!this.#isDrawn) return {};
    return {
      // Names of private workers are no addresses, and nobody dials them.
      isNodeAddress: (node) => this.#of(node).isPrivate !== true,
      dialWorker: ({ node }) => {
        if (this.#of(node).isPrivate === true) {
          this.#violations.by("targets").add(`the dispatcher dialled ${node}, which is private`);
        }
        if (!this.#isDeaf(node)) return Promise.resolve();
        return Promise.reject(new LeatError("unavailable", `${node} does not answer`));
      },
    };
  }

  /** The settings of a worker. Call it at each start of its node. */
  worker(name: string, node: SimNode): WorkerTarget {
    this.#names.set(node.name, name);
    const target = this.#of(node.name);
    this.checker.worker(node.name, target);
    return target;
  }

  /** The settings of the client on a node. Call it at each start of the node. */
  client({ name, system }: SimNode): { readonly process?: string } {
    system.inspect(this.checker.client(name));
    return this.#isDrawn ? { process: name } : {};
  }

  /** Checks that the dispatcher says which living workers do not answer, once all are known. */
  async expectDeafKnown(node: SimNode): Promise<void> {
    if (!this.#isDrawn) return;
    const wanted = () =>
      this.#cluster.nodes.filter(({ name }) => this.#isDeaf(name)).map(({ name }) => name).sort();
    let said: readonly string[] = [];
    let isRight = false;
    const look = async () => {
      while (!isRight) {
        said = await unreachableAt(node);
        isRight = String(said) === String(wanted());
        await node.host.sleep(LOOK_MS);
      }
    };
    const findings = this.#violations.by("targets");
    look().catch((error) => findings.add(LeatError.from(error).message));
    await runUntil(this.#cluster, () => isRight, "it is known which workers do not answer").catch(
      () => findings.add(`unreachable are ${wanted()}, but the dispatcher says ${said || "none"}`),
    );
  }

  #isDeaf(node: string): boolean {
    return this.#deaf.has(this.#names.get(node) ?? "");
  }

  #of(node: string): WorkerTarget {
    return this.#workers.get(this.#names.get(node)!) ?? { tags: [] };
  }
}

/** The living workers that the dispatcher could not reach. */
async function unreachableAt({ system }: SimNode): Promise<readonly string[]> {
  const limits = { timeoutMs: LOOK_TIMEOUT_MS, attemptMs: LOOK_MS };
  const { workers } = await system.ask(dispatcherAt(DISPATCHER_NODE), "describe", null, limits);
  return workers.filter(({ alive, unreachable }) => alive && unreachable !== undefined)
    .map(({ name }) => name).sort();
}
