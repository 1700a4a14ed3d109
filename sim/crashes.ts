/**
 * Crashes that a run has planned: of nodes of some roles, while the work is under way, each by itself
 * or all at once, or of nodes of one role at counted messages.
 *
 * @module
 */
import type { InspectionEvent } from "../actors/runtime/inspection.ts";
import type { SimCluster } from "./cluster.ts";
import type { SimNode } from "./node.ts";
import type { SimRandom } from "./random.ts";

/** A crash comes after so many elements at the latest, so that it falls into the work… */
const AFTER_ELEMENTS_MAX = 12;
/** …or, when elements come too slowly, after so long, in ms. */
export const CRASH_AFTER_MAX_MS = 8_000;
/** How long after that the node goes, at most, in ms. */
const STEP_MAX_MS = 20;
/** How long a crashed node stays down at most, in ms. */
export const DOWN_MAX_MS = 1_000;

/** What a node is in the cluster. */
export type Role = "dispatcher" | "worker" | "client";

/** All of them. */
export const ROLES: readonly Role[] = ["dispatcher", "worker", "client"];

/** How often a role crashes in a run in which it does. */
const CRASHES_OF_ROLE: [number, ...number[]] = [1, 1, 2, 4];

/** Draws who crashes: each role in half of all runs, and then mostly once. */
export function drawCrashes(random: SimRandom): Role[] {
  return ROLES.filter(() => random.chance(0.5)).flatMap((role) =>
    Array<Role>(random.pick(CRASHES_OF_ROLE)).fill(role)
  );
}

/** A crash that comes with a message that the first node of a role is given, or is about to send. */
export interface CrashPoint {
  readonly role: Role;
  /** Counts the messages of each of the node's lives from 1. */
  readonly message: number;
  /** How many of its lives end so. Default 1. */
  readonly lives?: number;
}

/** What crashes. */
export interface CrashesOptions {
  /** The names of the nodes of each role. */
  readonly nodes: Readonly<Record<Role, readonly string[]>>;
  /** For each of these one node of the role crashes; a role may be there several times. */
  readonly roles: readonly Role[];
  readonly point?: CrashPoint | undefined;
  readonly onCrash: (node: SimNode) => void;
}

interface PlannedCrash {
  readonly role: Role;
  readonly name: string;
  /** It comes once so many elements were delivered. */
  readonly after: number;
}

/** See the module. */
export class Crashes {
  readonly #cluster: SimCluster;
  readonly #onCrash: (node: SimNode) => void;
  /** Those that are still to come. */
  readonly #planned: PlannedCrash[] = [];
  #restarts = 0;
  #moves = 0;
  /** All crashes come in one moment. */
  readonly #together: boolean;

  constructor(cluster: SimCluster, { nodes, roles, point, onCrash }: CrashesOptions) {
    this.#cluster = cluster;
    this.#onCrash = onCrash;
    cluster.trainers = nodes.client;
    if (point !== undefined) this.#watch(cluster.node(nodes[point.role][0]!), point);
    const luck = cluster.random.fork("crashes");
    const { crashTogetherProbability } = cluster.network.faults;
    this.#together = luck.fork("together").chance(crashTogetherProbability) && roles.length > 1;
    let after = 0;
    for (const [i, role] of roles.entries()) {
      const names = nodes[role];
      const name = names[luck.int(names.length)]!;
      const drawn = luck.int(AFTER_ELEMENTS_MAX + 1);
      if (i === 0 || !this.#together) after = drawn;
      this.#planned.push({ role, after, name });
    }
    cluster.after(luck.between(0, CRASH_AFTER_MAX_MS), "crashes", () => this.delivered(Infinity));
  }

  /** Whether all have come, and every node was started again. */
  get over(): boolean {
    return this.#planned.length + this.#restarts === 0;
  }

  /** So many elements were delivered: those that are due happen now. */
  delivered(count: number): void {
    const dues = this.#planned.filter(({ after }) => after <= count);
    if (dues.length === 0) return;
    const luck = this.#cluster.random.fork(`crash at ${count}`);
    const delayMs = luck.fork("together").between(0, STEP_MAX_MS);
    for (const due of dues) {
      this.#planned.splice(this.#planned.indexOf(due), 1);
      this.#restarts++;
      const ownDelayMs = luck.between(0, STEP_MAX_MS);
      if (this.#together) this.#cluster.counters.count("crashed_together");
      this.#cluster.after(
        this.#together ? delayMs : ownDelayMs,
        "crash",
        () => this.#crash(due, luck),
      );
    }
  }

  /** Counts the messages of the life that has begun. */
  #watch(node: SimNode, point: CrashPoint): void {
    const { role, message, lives = 1 } = point;
    if (lives === 0) return;
    let count = 0;
    node.system.inspect(({ type }: InspectionEvent) => {
      if (type !== "deliver" && type !== "send") return;
      this.#cluster.counters.tally(`${role}_messages`);
      if (++count !== message) return;
      const luck = this.#cluster.random.fork(`crash ${lives} at message ${message}`);
      const life = node.lives;
      this.#restarts++;
      const crash = () => {
        if (!node.isUp || node.lives !== life) this.#restarts--;
        else {
          this.#crash(
            { role, name: node.name },
            luck,
            () => this.#watch(node, { ...point, lives: lives - 1 }),
          );
        }
      };
      // Now: a message that would have left does not. Or while what it has caused is under way. A
      // training loop is no actor: nothing would silence it in the turn in which its node is struck.
      const delayMs = luck.pick([0, 0, 0.3, 1]);
      if (delayMs === 0 && role !== "client") crash();
      else this.#cluster.after(delayMs, "crash", crash);
    });
  }

  #crash(
    { role, name }: Pick<PlannedCrash, "role" | "name">,
    luck: SimRandom,
    onStarted: () => void = () => {},
  ): void {
    const { counters, network } = this.#cluster;
    const { silentCrashProbability, moveProbability } = network.faults;
    const node = this.#cluster.node(name);
    counters.tally(`${role}_crashed`);
    const silent = luck.chance(silentCrashProbability);
    if (node.isUp) node.crash({ silent });
    this.#onCrash(node);
    const moves = role === "worker" && luck.fork("moves").chance(moveProbability);
    this.#cluster.after(luck.between(0, DOWN_MAX_MS), "restart", () => {
      this.#restarts--;
      if (!node.isUp && node.isWanted && this.#cluster.node(name) === node) {
        if (moves) this.#cluster.moveNode(name, `${name}-moved-${++this.#moves}`);
        else node.start();
      }
      onStarted();
    });
  }
}
