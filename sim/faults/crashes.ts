/**
 * Planned crashes of a run. Nodes of some roles crash during the work, one by one or all together. Or
 * the first node of one role crashes at a counted message.
 */
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import type { SimCluster } from "../engine/cluster.ts";
import type { SimNode } from "../engine/node.ts";
import type { SimRandom } from "../engine/random.ts";

/** Maximum number of elements before a crash, so that it happens during the work. */
const AFTER_ELEMENTS_MAX = 12;
/** Maximum time before a crash if elements arrive too slowly, in ms. */
export const CRASH_AFTER_MAX_MS = 8_000;
/** Maximum additional delay of a crash, in ms. */
const STEP_MAX_MS = 20;
/** Maximum downtime of a crashed node, in ms. */
export const DOWN_MAX_MS = 1_000;

/** The role of a node in the cluster. */
export type Role = "dispatcher" | "worker" | "client";

export const ROLES: readonly Role[] = ["dispatcher", "worker", "client"];

/** Number of crashes of a role, if it crashes in a run. */
const CRASHES_OF_ROLE: [number, ...number[]] = [1, 1, 2, 4];

/** Draws the roles that crash. Each role crashes in half of all runs, and then once, twice or four times. */
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
  /** Number of lives of the node that crash at this message. Default 1. */
  readonly lives?: number;
}

/** Whether a node of a role crashes in a run with these options. */
export function crashesRole(
  role: Role,
  { crashes = [], crashPoint }: {
    readonly crashes?: readonly Role[];
    readonly crashPoint?: CrashPoint;
  },
): boolean {
  return crashes.includes(role) || crashPoint?.role === role;
}

interface CrashesOptions {
  /** The names of the nodes of each role. */
  readonly nodes: Readonly<Record<Role, readonly string[]>>;
  /** For each entry, one node of the role crashes. Roles may repeat. */
  readonly roles: readonly Role[];
  readonly point?: CrashPoint | undefined;
  readonly onCrash: (node: SimNode) => void;
}

interface PlannedCrash {
  readonly role: Role;
  readonly name: string;
  /** Number of delivered elements before the crash. */
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

  /** Reports the number of delivered elements, and starts the crashes that are due. */
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

  /** Counts the messages of the node's current life, and crashes it at the planned message. */
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
      // An immediate crash prevents an outgoing message. A delayed crash happens during the work that
      // follows. A client crashes only after the event, because its training loop is no actor that the
      // crash would stop within it.
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
