/**
 * Runs transactions: **append, then apply, then answer**. A transaction decides without waiting.
 * Nothing leaves the dispatcher, not even the answer to a read, before all earlier records are
 * durable: a crash could undo them. If the journal fails, the dispatcher dies without answering,
 * and restarts from the journal.
 */
import { LeatError } from "../../core/error.ts";
import type { ActorContext } from "../runtime/actor.ts";
import type { Settings } from "./config.ts";
import type { Effects } from "./effects.ts";
import type { Journal, JournalStall } from "./journal/journal.ts";
import type { JournalRecord } from "./journal/records.ts";
import { openJournal, type Recovered } from "./journal/recovery.ts";
import type { DispatcherState } from "./state/state.ts";
import type { Transaction } from "./transaction.ts";

export class Transactions {
  readonly state: DispatcherState;
  readonly #context: ActorContext;
  readonly #journal: Journal;
  readonly #opened: Recovered;
  readonly #tx: Transaction;
  #effects!: Effects;
  /** Records committed since this dispatcher started. */
  #commits = 0;

  private constructor(context: ActorContext, settings: Settings, opened: Recovered) {
    const { world, random } = context;
    const { state, journal } = opened;
    this.state = state;
    this.#context = context;
    this.#opened = opened;
    this.#journal = settings.wrapJournal?.(journal, state) ?? journal;
    this.#tx = {
      state,
      random: random.fork("ids and seeds"),
      get nowMs() {
        return world.nowMs();
      },
      get wallMs() {
        return world.wallMs();
      },
      listedWorkers: settings.workers,
      unheard: new Set(state.workers.values().filter(({ alive }) => alive).map(({ name }) => name)),
      append: (record) => this.#append(record),
    };
  }

  static async open(context: ActorContext, settings: Settings): Promise<Transactions> {
    const { world } = context;
    const opened = await openJournal(await world.openLog(settings.logName), {
      recordsMax: settings.journalRecordsMax,
      bytesMax: settings.journalBytesMax,
      snapshotBytesMax: settings.journalSnapshotBytesMax,
      isCompactedEarly: () => world.fault("dispatcher.compact_early"),
      macrotask: (fn) => world.macrotask(fn),
      nowMs: () => world.nowMs(),
      timer: (delayMs, fn) => world.timer(delayMs, fn),
      onStall: (stall) => {
        if (stall === undefined) {
          world.log("warn", "The journal's disk has space again: the dispatcher continues");
          return;
        }
        const { message } = stall;
        world.log(
          "error",
          `The dispatcher delays its answers: ${message}. It tries again every few seconds.`,
        );
      },
      onTooLarge: ({ message }) =>
        world.log(
          "error",
          `The dispatcher's journal cannot be compacted, and grows until the state is smaller: ` +
            `${message} (SNAPSHOT_BYTES_MAX). Release jobs and datasets, or lower the quotas of ` +
            "identities",
        ),
      onFailure: (error) => {
        const message = `The journal of the dispatcher failed: ${error.message}`;
        die(context, new LeatError(error.code, message, { cause: error }));
      },
    });
    return new Transactions(context, settings, opened);
  }

  /** Call this before the first transaction. */
  setEffects(effects: Effects): void {
    this.#effects = effects;
  }

  /**
   * Runs a transaction. Its answer or error is delivered once all records so far are durable.
   * @throws {LeatError} the decision's own error; `internal` for a bug.
   */
  run<A>(decide: (tx: Transaction) => A): A | Promise<A> {
    const answer = this.#decide(() => outcomeOf(() => decide(this.#tx)));
    const wait = this.#journal.committed();
    return wait === undefined ? answer() : wait.then(answer);
  }

  /**
   * Runs a transaction that nobody requested, such as a timeout. Every error in it is a bug: if the
   * transaction has changed nothing, the error is logged; otherwise the dispatcher dies.
   */
  runUnrequested(decide: (tx: Transaction) => void): void {
    this.#decide(() => {
      decide(this.#tx);
      return () => {};
    });
    // A journal failure ends the dispatcher: nothing to do here.
    this.#journal.committed()?.catch(() => {});
  }

  /** Reads the state without waiting for durability. @throws {LeatError} `internal` for a bug. */
  look<A>(look: (state: DispatcherState) => A): A {
    return this.#decide(() => {
      const found = look(this.state);
      return () => found;
    })();
  }

  /**
   * Like `look`, but with a whole transaction, which must change nothing. Only for descriptions.
   */
  lookAround<A>(look: (tx: Transaction) => A): A {
    return this.look(() => look(this.#tx));
  }

  /** See `Transaction.unheard`. */
  get unheard(): ReadonlySet<string> {
    return this.#tx.unheard;
  }

  /** Why nothing becomes durable now; undefined if the journal works. */
  get stall(): JournalStall | undefined {
    return this.#opened.journal.stall;
  }

  /** Runs `act` once all decisions so far are durable; never if the journal fails. */
  whenDurable(act: () => void): void {
    const wait = this.#journal.committed();
    if (wait === undefined) act();
    // A journal failure ends the dispatcher: nothing to do here.
    else wait.then(act, () => {});
  }

  /** Settles when all decisions so far are durable; undefined if they already are. */
  durable(): Promise<void> | undefined {
    return this.#journal.committed();
  }

  /** Writes what was appended and closes the journal. */
  close(): Promise<void> {
    return this.#opened.journal.close();
  }

  #decide<A>(outcome: () => () => A): () => A {
    const commits = this.#commits;
    try {
      const answer = outcome();
      this.#effects.conclude(this.#tx);
      return answer;
    } catch (error) {
      return this.#failed(error, this.#commits > commits);
    }
  }

  /** Appends, then applies. If an appended record cannot be applied, that is a bug. */
  #append(record: JournalRecord): void {
    this.#journal.append(record);
    this.#commits++;
    this.#effects.before(record);
    try {
      this.state.apply(record);
    } catch (cause) {
      const { message } = LeatError.from(cause);
      throw new Error(`A record "${record.type}" cannot be applied: ${message}`, { cause });
    }
    this.#effects.after(record);
  }

  /**
   * A bug before any change fails only its request. After a change, the dispatcher dies and drops
   * the transaction's records: the next start would replay half of a decision, or a record that
   * cannot be applied.
   */
  #failed(error: unknown, hasChanged: boolean): () => never {
    const { message, stack } = LeatError.from(error);
    const failure = new LeatError("internal", `The dispatcher has failed: ${message}`, {
      cause: error,
    });
    if (hasChanged) {
      this.#opened.journal.abandon();
      die(this.#context, failure);
      throw failure;
    }
    this.#context.world.log("error", failure.message, { stack });
    return () => {
      throw failure;
    };
  }
}

/** The outcome of a decision: an answer or a known error. Throws bugs. */
function outcomeOf<A>(decide: () => A): () => A {
  try {
    const answer = decide();
    return () => answer;
  } catch (error) {
    if (!(error instanceof LeatError)) throw error;
    return () => {
      throw error;
    };
  }
}

function die(context: ActorContext, error: LeatError): void {
  // `cancelled` never kills an actor; it is rethrown as `internal`.
  const cause = error.code === "cancelled"
    ? new LeatError("internal", error.message, { cause: error })
    : error;
  context.run(() => Promise.reject(cause));
}
