/**
 * Checks what the training loops of a coordinated read receive. In every common step, each loop gets its
 * own part of one round of one task. No round of a task is missing, unless the task was lost. Consumers
 * that reach the end reach it after the same round.
 */
import type { JournalRecord } from "../../actors/dispatcher/journal/records.ts";
import type { Findings } from "./checker.ts";
import type { RecordWatcher } from "./journal.ts";

/** One element: its number in the stream of its task, and the identity of the task. */
interface RoundElement {
  readonly index: number;
  readonly task: unknown;
}

/**
 * How many times the rounds that a consumer reads ahead may lie between rounds that begin one after the
 * other, after a restart or the loss of a task.
 */
const OUT_OF_ORDER_TIMES = 3;

/** Watches one job. Each life of a consumer's client has its own name. */
export class RoundsChecker implements RecordWatcher {
  readonly #numConsumers: number;
  readonly #findings: Findings;
  /** The rounds that each life received, in order. */
  readonly #steps = new Map<string, string[]>();
  /** For each two lives, how many more steps the first had taken at the same round. */
  readonly #ahead = new Map<string, number>();
  /** For each round of a task, which life received it at which of its steps. */
  readonly #taken = new Map<string, Map<string, number>>();
  /** The lives that reached the end, with their last round. */
  readonly #last = new Map<string, string>();
  /** The numbers of the rounds that the first lives of consumers received, by life and task. */
  readonly #firstLives = new Map<string, Map<unknown, Set<number>>>();
  /** The first life of each consumer, by its index. */
  readonly #firstLifeOf = new Map<number, string>();
  /** The requests for which the dispatcher has opened a client. */
  readonly #requests = new Set<string>();
  /** How many times it has opened another client for such a request. */
  #rejoins = 0;
  /** Tasks that ended before their data. */
  readonly #lostTasks = new Set<number>();

  constructor(numConsumers: number, findings: Findings) {
    this.#numConsumers = numConsumers;
    this.#findings = findings;
  }

  get delivered(): number {
    return [...this.#steps.values()].reduce((sum, steps) => sum + steps.length, 0);
  }

  /** Number of steps that the life has taken. */
  stepsOf(life: string): number {
    return this.#steps.get(life)?.length ?? 0;
  }

  /** Records that the first life of a consumer begins. */
  began(life: string, consumerIndex: number): void {
    this.#firstLives.set(life, new Map());
    this.#firstLifeOf.set(consumerIndex, life);
  }

  /** Records that a life received an element. */
  took(life: string, consumerIndex: number, { index, task }: RoundElement): void {
    const n = this.#numConsumers;
    if (index % n !== consumerIndex) {
      this.#findings.add(`${life} took element ${index}, which is consumer ${index % n}'s`);
    }
    const number = Math.floor(index / n);
    const tasks = this.#firstLives.get(life);
    tasks?.getOrInsertComputed(task, () => new Set()).add(number);
    const round = `round ${number} of ${task}`;
    const steps = this.#steps.get(life) ?? [];
    this.#steps.set(life, steps);
    const takers = this.#taken.get(round) ?? new Map<string, number>();
    this.#taken.set(round, takers);
    if (takers.has(life)) this.#findings.add(`${life} took ${round} twice`);
    takers.set(life, steps.length);
    steps.push(round);
    for (const other of this.#steps.keys()) if (other !== life) this.#compare(life, other, round);
  }

  /**
   * Records that the life reached the end. All lives that reach it must have the same last round.
   */
  ended(life: string): void {
    const last = this.#steps.get(life)?.at(-1);
    if (last === undefined) return;
    for (const [other, round] of this.#last) {
      if (round === last) continue;
      this.#findings.add(`${life} came to the end after ${last}, and ${other} after ${round}`);
    }
    this.#last.set(life, last);
  }

  journaled(record: JournalRecord): void {
    if (record.type === "client_opened") {
      this.#clientOpened(record.requestId, record.consumerIndex!);
    }
    if (record.type !== "task_ended" || record.why === "unread") return;
    this.#lostTasks.add(record.taskId);
  }

  /** Keeps tasks whose end is void. They only forgive a missing round. */
  lost(): void {}

  /**
   * Checks at the end that lives which read from the first round received all rounds of each task, except
   * of as many tasks as were lost. A consumer that restarts asks first for rounds that the others have not
   * reached, and rounds of a lost task are asked of another, late. Each time, rounds begin out of order,
   * so that the last ones that a life received may be further from its others. A consumer that was
   * declared lost, and does not know it, may ask a task for rounds that are now another's: nobody else
   * reads those.
   * @param started Number of lives of consumers after the first ones.
   * @param aheadMax Maximum number of rounds that a consumer reads ahead.
   */
  expectNoneLost({ started, aheadMax }: { started: number; aheadMax: number }): void {
    // Also of those that were only declared lost.
    const restarts = started + this.#rejoins;
    const apartMax = OUT_OF_ORDER_TIMES * (aheadMax + 1) * (restarts + this.#lostTasks.size);
    const missing = new Map<unknown, Map<number, string>>();
    for (const [life, tasks] of this.#firstLives) {
      for (const [task, rounds] of tasks) {
        const stop = Math.max(...rounds) - apartMax;
        for (let round = 0; round < stop; round++) {
          if (rounds.has(round)) continue;
          const text = `${life} never took round ${round} of ${task}`;
          missing.getOrInsertComputed(task, () => new Map()).set(round, text);
        }
      }
    }
    const unforgiven = [...missing.values()].sort((a, b) => b.size - a.size)
      .slice(this.#lostTasks.size).flatMap((rounds) => [...rounds.values()]);
    if (unforgiven.length <= restarts * (aheadMax + 1)) return;
    const texts = unforgiven.join("; ");
    this.#findings.add(
      `${texts}, with ${this.#lostTasks.size} lost tasks and ${restarts} restarts`,
    );
  }

  /**
   * A consumer that hears no answer to its first request may be declared lost before it reads. When it
   * repeats the request, it gets another client, which begins where the others are, as after a restart.
   */
  #clientOpened(requestId: string, consumerIndex: number): void {
    if (!this.#requests.has(requestId)) return void this.#requests.add(requestId);
    this.#rejoins++;
    const life = this.#firstLifeOf.get(consumerIndex);
    if (life !== undefined && this.stepsOf(life) === 0) this.#firstLives.delete(life);
  }

  /** Whether each two of these lives shared a step. */
  haveMet(lives: readonly string[]): boolean {
    return lives.every((life, i) =>
      lives.slice(i + 1).every((other) => this.#ahead.has(`${life} ${other}`))
    );
  }

  #compare(life: string, other: string, round: string): void {
    const step = this.#steps.get(life)!.length - 1;
    const ahead = this.#ahead.get(`${life} ${other}`);
    const otherStep = this.#taken.get(round)!.get(other);
    if (ahead === undefined) {
      if (otherStep === undefined) return;
      this.#ahead.set(`${life} ${other}`, step - otherStep);
      this.#ahead.set(`${other} ${life}`, otherStep - step);
      return;
    }
    const otherRound = this.#steps.get(other)![step - ahead];
    if (otherRound === undefined ? otherStep === undefined : otherRound === round) return;
    this.#findings.add(
      `in one step ${life} took ${round} and ${other} ${otherRound ?? "nothing yet"}` +
        (otherStep === undefined
          ? ""
          : `, which took that ${step - ahead - otherStep} steps before`),
    );
  }
}
