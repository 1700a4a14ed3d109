/**
 * The dispatcher's order of work: **append, then apply, then answer**.
 *
 * A turn decides, without waiting for anything. Each change that it makes is appended to the journal
 * and applied at once; and whatever would leave (an answer, a message to a worker) waits until
 * everything appended before it is durable. That holds for answers that only read as well: what they
 * read may not survive a crash yet. If the journal fails, the dispatcher dies without another word, and
 * its next life begins from what the journal holds.
 *
 * @module
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

/** See the module. */
export class Transactions {
  readonly state: DispatcherState;
  readonly #context: ActorContext;
  readonly #journal: Journal;
  readonly #opened: Recovered;
  readonly #tx: Transaction;
  #effects!: Effects;
  /** Records that were committed in this life. */
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
      commit: (record) => this.#commit(record),
    };
  }

  /** Takes up the journal where it was left. */
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
          world.log("warn", "The dispatcher's journal has room again, and it goes on");
          return;
        }
        const { message } = stall;
        world.log(
          "error",
          `The dispatcher waits with its answers: ${message}. It tries again every few seconds.`,
        );
      },
      onTooLarge: ({ message }) =>
        world.log(
          "error",
          `The dispatcher's journal is not compacted, and grows until its state is smaller: ${message} ` +
            "(SNAPSHOT_BYTES_MAX). Release jobs and datasets, or lower the quotas of identities",
        ),
      onFailure: (error) => {
        const message = `The journal of the dispatcher failed: ${error.message}`;
        die(context, new LeatError(error.code, message, { cause: error }));
      },
    });
    return new Transactions(context, settings, opened);
  }

  /** Says what follows from changes, before the first of them. */
  follow(effects: Effects): void {
    this.#effects = effects;
  }

  /**
   * Decides; the answer or error is given when everything it rests on is durable.
   *
   * @throws {LeatError} what was decided to be thrown; `internal` for a bug.
   */
  run<A>(decide: (tx: Transaction) => A): A | Promise<A> {
    const answer = this.#decide(() => outcomeOf(() => decide(this.#tx)));
    const wait = this.#journal.committed();
    return wait === undefined ? answer() : wait.then(answer);
  }

  /**
   * Decides what nobody has asked for: what is due, or has happened elsewhere. There is nobody to tell
   * of an error, so that each is a bug; one that has changed nothing is logged, and the dispatcher lives
   * on, whether there is something to wait for or not.
   */
  runUnasked(decide: (tx: Transaction) => void): void {
    this.#decide(() => {
      decide(this.#tx);
      return () => {};
    });
    // A journal that fails ends this life by itself.
    this.#journal.committed()?.catch(() => {});
  }

  /**
   * Looks whether there is anything to decide.
   *
   * @throws {LeatError} `internal` for a bug.
   */
  look<A>(look: (state: DispatcherState) => A): A {
    return this.#decide(() => {
      const found = look(this.state);
      return () => found;
    })();
  }

  /** Looks as a turn does, at what may not be durable yet: for people alone. It changes nothing. */
  lookAround<A>(look: (tx: Transaction) => A): A {
    return this.look(() => look(this.#tx));
  }

  /** Why nothing becomes durable for now, if so. */
  get stall(): JournalStall | undefined {
    return this.#opened.journal.stall;
  }

  /** Acts when all that was decided so far is durable, if it comes to that. */
  whenDurable(act: () => void): void {
    const wait = this.#journal.committed();
    if (wait === undefined) act();
    // A journal that fails ends this life by itself.
    else wait.then(act, () => {});
  }

  /** Settles when all that was decided so far is durable; undefined when it is already. */
  durable(): Promise<void> | undefined {
    return this.#journal.committed();
  }

  /** What was appended is written, and the journal let go. */
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

  /** Append, then apply. A change that was appended and cannot be applied is a bug, whatever is thrown. */
  #commit(record: JournalRecord): void {
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
   * A bug that has changed nothing costs its asker alone. One amid changes is the end of this life, and
   * of the changes: the next life would read half of what was decided, or what it cannot apply.
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

/** What a decision comes to: an answer, or a known error. A bug is thrown. */
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
  // Of what is cancelled nobody dies.
  const cause = error.code === "cancelled"
    ? new LeatError("internal", error.message, { cause: error })
    : error;
  context.run(() => Promise.reject(cause));
}
