/** A dispatcher with one job of coordinated reads and its consumers, for tests. */
import { RoundSchedules } from "../../../../actors/client/readers/round_schedules.ts";
import type { Journal } from "../../../../actors/dispatcher/journal/journal.ts";
import type { RoundsPosition } from "../../../../actors/dispatcher/protocol_heartbeats.ts";
import type { RoundSchedule } from "../../../../actors/dispatcher/protocol_schedules.ts";
import { encodeMessage } from "../../../../transport/codec.ts";
import { assertEquals } from "../../../assert.ts";
import { roundsNews, TestCluster } from "../lib.ts";
import type { TestWorker } from "../test_worker.ts";

export const COORDINATED = { jobName: "rounds", processingMode: "OFF", numConsumers: 2 } as const;

/** A consumer that keeps to the protocol and reads a task by noting which it was. */
export class Consumer {
  readonly read: number[] = [];
  /** Rounds that it has read and its training loop was not given. */
  held: number[] = [];
  readonly clientId: number;
  readonly #cluster: TestCluster;
  readonly #dead: ReadonlySet<number>;
  schedules: readonly RoundSchedule[] = [];
  nextRound: number | undefined;
  proposed: RoundSchedule | undefined;
  lost = false;
  /** Tasks that schedules named. */
  tasksTold = 0;
  readonly #known = new RoundSchedules();

  constructor(cluster: TestCluster, clientId: number, dead: ReadonlySet<number>) {
    this.#cluster = cluster;
    this.clientId = clientId;
    this.#dead = dead;
  }

  async heartbeat(): Promise<void> {
    const lostTask = this.lost ? this.taskOf(this.nextRound!) : undefined;
    const report = {
      kind: "rounds" as const,
      ...(this.nextRound === undefined ? {} : {
        position: {
          kind: "reading" as const,
          nextRound: this.nextRound,
          deliveredRound: this.held[0] ?? this.nextRound,
        },
      }),
      ...(this.proposed === undefined ? {} : { acceptedSchedule: this.proposed.version }),
      ...this.#known.known,
      heldRounds: this.held,
      ...(lostTask === undefined ? {} : { lostTasks: [{ taskId: lostTask }] }),
    };
    const news = roundsNews(
      await this.#cluster.ask("clientHeartbeat", { clientId: this.clientId, report }),
    );
    const { schedules, proposed } = this.#known.complete(news.schedules, news.proposed);
    for (
      const { taskIds = [], added = [], removed = [] } of [
        ...news.schedules,
        ...news.proposed === undefined ? [] : [news.proposed],
      ]
    ) this.tasksTold += taskIds.length + added.length + removed.length;
    this.#known.add(schedules);
    this.schedules = schedules;
    this.nextRound ??= schedules[0]?.fromRound;
    const acceptable = proposed !== undefined && (this.nextRound ?? 0) <= proposed.fromRound;
    this.proposed = acceptable ? proposed : undefined;
  }

  taskOf(round: number): number | undefined {
    const schedule = this.schedules.findLast(({ fromRound }) => fromRound <= round);
    return schedule?.taskIds[round % schedule.taskIds.length];
  }

  /** Reads the next round if it may and can. */
  step(): boolean {
    if (this.nextRound === undefined) return false;
    if (this.proposed !== undefined && this.nextRound >= this.proposed.fromRound) return false;
    const taskId = this.taskOf(this.nextRound);
    this.lost = taskId !== undefined && this.#dead.has(taskId);
    if (taskId === undefined || this.lost) return false;
    this.read[this.nextRound++] = taskId;
    return true;
  }
}

export async function coordinatedCluster(
  workerCount: number,
  wrapJournal = (journal: Journal) => journal,
) {
  const cluster = await TestCluster.start({ clientTimeoutMs: 120_000, wrapJournal });
  const dead = new Set<number>();
  const workers: TestWorker[] = [];
  for (let i = 0; i < workerCount; i++) {
    workers.push(cluster.worker(`worker-${i}`));
    await workers[i]!.heartbeat();
  }
  const datasetId = await cluster.dataset("endless", -1);
  const join = async (consumerIndex: number) => {
    const { clientId } = await cluster.open(datasetId, { ...COORDINATED, consumerIndex });
    return new Consumer(cluster, clientId, dead);
  };
  return { cluster, dead, workers, join };
}

/** Lets all consumers read until each has got to that round, with a heartbeat every few steps. */
export async function readUntil(
  consumers: readonly Consumer[],
  round: number,
  stepsPerHeartbeat = 3,
) {
  for (let heartbeats = 0; heartbeats < 1_000; heartbeats++) {
    for (let step = 0; step < stepsPerHeartbeat; step++) {
      for (const consumer of consumers) if ((consumer.nextRound ?? 0) < round) consumer.step();
    }
    if (consumers.every(({ nextRound = 0 }) => nextRound >= round)) return;
    for (const consumer of consumers) await consumer.heartbeat();
  }
  throw new Error(`stuck at rounds ${consumers.map(({ nextRound }) => nextRound)}`);
}

export function positionAt(nextRound: number, deliveredRound: number): RoundsPosition {
  return { kind: "reading", nextRound, deliveredRound };
}

/** Bytes of schedules that are journaled for each of so many workers that join one by one. */
export async function journaledPerWorker(workerCount: number): Promise<number> {
  let bytes = 0;
  const { cluster, workers, join } = await coordinatedCluster(1, (journal) => ({
    append: (record) => {
      if (record.type.startsWith("schedule_")) bytes += encodeMessage(record).byteLength;
      journal.append(record);
    },
    committed: () => journal.committed(),
    close: () => journal.close(),
  }));
  await using _ = cluster;
  const consumers = [await join(0), await join(1)];
  await workers[0]!.heartbeat();
  await readUntil(consumers, 10);
  bytes = 0;
  for (let i = 0; i < workerCount; i++) {
    await cluster.worker(`late-${i}`).heartbeat();
    for (const consumer of consumers) await consumer.heartbeat();
  }
  const perWorker = bytes / workerCount;
  await readUntil(consumers, consumers[0]!.nextRound! + 2 * workerCount + 10);
  const { schedules } = consumers[0]!;
  assertEquals(schedules.at(-1)!.taskIds.length, 1 + workerCount, "all workers serve");
  await cluster.restart();
  for (const consumer of consumers) await consumer.heartbeat();
  assertEquals(consumers[0]!.schedules, schedules, "what was journaled gives the same schedules");
  return perWorker;
}
