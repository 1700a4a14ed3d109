/**
 * Planned crashes of a run: of nodes of some roles during the work, one by one or all together, or
 * of the nodes of one role at counted messages.
 */
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import type { SimCluster } from "../engine/cluster.ts";
import type { SimNode } from "../engine/node.ts";
import type { SimRandom } from "../engine/random.ts";

/** A crash comes after at most so many elements, so that it falls into the work… */
const AFTER_ELEMENTS_MAX = 12;
/** …or, if elements come too slowly, after so long, in ms. */
export const CRASH_AFTER_MAX_MS = 8_000;
/** Longest delay between that and the crash, in ms. */
const STEP_MAX_MS = 20;
/** Longest downtime of a crashed node, in ms. */
export const DOWN_MAX_MS = 1_000;

/** The role of a node in the cluster. */
export type Role = "dispatcher" | "worker" | "client";

export const ROLES: readonly Role[] = ["dispatcher", "worker", "client"];

/** Number of crashes of a role, in a run in which it crashes. */
const CRASHES_OF_ROLE: [number, ...number[]] = [1, 1, 2, 4];

/** Draws the roles that crash: each in half of all runs, and then usually once. */
export function drawCrashes(random: SimRandom): Role[] {
  return ROLES.filter(() => random.chance(0.5)).flatMap((role) =>
    Array<Role>(random.pick(CRASHES_OF_ROLE)).fill(role)
  );
}

/** A crash at a message that the first node of a role receives, or is about to send. */
export interface CrashPoint {
  readonly role: Role;
  /** The number of the message in the node's life, from 1. */
  readonly message: number;
  /** Number of lives that end this way. Default 1. */
  readonly lives?: number;
}

interface CrashesOptions {
  /** The names of the nodes of each role. */
  readonly nodes: Readonly<Record<Role, readonly string[]>>;
  /** For each entry one node of the role crashes; roles may repeat. */
  readonly roles: readonly Role[];
  readonly point?: CrashPoint | undefined;
  readonly onCrash: (node: SimNode) => void;
}

interface PlannedCrash {
  readonly role: Role;
  readonly name: string;
  /** It happens after so many delivered elements. */
  readonly after: number;
}

/** Carries out the planned crashes. */
export class Crashes {
  readonly #cluster: SimCluster;
  readonly #onCrash: (node: SimNode) => void;
  /** The crashes still to come. */
  readonly #planned: PlannedCrash[] = [];
  #restarts = 0;
  #moves = 0;
  /** Whether all crashes happen together. */
  readonly #together: boolean;

  constructor(cluster: SimCluster, { nodes, roles, point, onCrash }: CrashesOptions) {
    this.#cluster = cluster;
    this.#onCrash = onCrash;
    cluster.trainers = nodes.client;
    if (point !== undefined) this.#watch(cluster.node(nodes[point.role][0]!), point);
    const rng = cluster.random.fork("crashes");
    const { crashTogetherProbability } = cluster.network.faults;
    this.#together = rng.fork("together").chance(crashTogetherProbability) && roles.length > 1;
    let after = 0;
    for (const [i, role] of roles.entries()) {
      const names = nodes[role];
      const name = names[rng.int(names.length)]!;
      const drawn = rng.int(AFTER_ELEMENTS_MAX + 1);
      if (i === 0 || !this.#together) after = drawn;
      this.#planned.push({ role, after, name });
    }
    cluster.after(rng.between(0, CRASH_AFTER_MAX_MS), "crashes", () => this.delivered(Infinity));
  }

  /** Whether all crashes have happened and every node has restarted. */
  get over(): boolean {
    return this.#planned.length + this.#restarts === 0;
  }

  /** Reports the number of delivered elements; due crashes happen now. */
  delivered(count: number): void {
    const dues = this.#planned.filter(({ after }) => after <= count);
    if (dues.length === 0) return;
    const rng = this.#cluster.random.fork(`crash at ${count}`);
    const delayMs = rng.fork("together").between(0, STEP_MAX_MS);
    for (const due of dues) {
      this.#planned.splice(this.#planned.indexOf(due), 1);
      this.#restarts++;
      const ownDelayMs = rng.between(0, STEP_MAX_MS);
      if (this.#together) this.#cluster.counters.count("crashed_together");
      this.#cluster.after(
        this.#together ? delayMs : ownDelayMs,
        "crash",
        () => this.#crash(due, rng),
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
      const rng = this.#cluster.random.fork(`crash ${lives} at message ${message}`);
      const life = node.lives;
      this.#restarts++;
      const crash = () => {
        if (!node.isUp || node.lives !== life) this.#restarts--;
        else {
          this.#crash(
            { role, name: node.name },
            rng,
            () => this.#watch(node, { ...point, lives: lives - 1 }),
          );
        }
      };
      // Now, so that an outgoing message is not sent, or during the work that follows. A training
      // loop is no actor: nothing would stop it within the event in which its node crashes.
      const delayMs = rng.pick([0, 0, 0.3, 1]);
      if (delayMs === 0 && role !== "client") crash();
      else this.#cluster.after(delayMs, "crash", crash);
    });
  }

  #crash(
    { role, name }: Pick<PlannedCrash, "role" | "name">,
    rng: SimRandom,
    onStarted: () => void = () => {},
  ): void {
    const { counters, network } = this.#cluster;
    const { silentCrashProbability, moveProbability } = network.faults;
    const node = this.#cluster.node(name);
    counters.tally(`${role}_crashed`);
    const silent = rng.chance(silentCrashProbability);
    if (node.isUp) node.crash({ silent });
    this.#onCrash(node);
    const moves = role === "worker" && rng.fork("moves").chance(moveProbability);
    this.#cluster.after(rng.between(0, DOWN_MAX_MS), "restart", () => {
      this.#restarts--;
      if (!node.isUp && node.isWanted && this.#cluster.node(name) === node) {
        if (moves) this.#cluster.moveNode(name, `${name}-moved-${++this.#moves}`);
        else node.start();
      }
      onStarted();
    });
  }
}
