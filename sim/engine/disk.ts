/**
 * The simulated disk of a node. It survives crashes and takes time to make records durable. A crash
 * loses a suffix of the records that are not durable.
 */
import type { DurableLog, LogContents } from "../../actors/runtime/durable_log.ts";
import { LeatError } from "../../core/error.ts";
import type { Counters } from "./counters.ts";
import type { Life } from "./life.ts";
import type { FaultOptions } from "../faults/options.ts";
import type { SimRandom } from "./random.ts";

/** What a disk needs from its run. */
interface DiskDependencies {
  readonly random: SimRandom;
  readonly counters: Counters;
  readonly faults: () => Pick<
    FaultOptions,
    | "diskSyncMinMs"
    | "diskSyncMaxMs"
    | "diskSlowProbability"
    | "diskSlowMaxMs"
    | "diskErrorProbability"
  >;
}

/** The durable content of one log. */
interface Platter {
  snapshot: Uint8Array | undefined;
  records: Uint8Array[];
  /** Total size. Updated with each change, because every write needs it. */
  bytes: number;
}

/** The logs of a node, by name. */
export class SimDisk {
  readonly #deps: DiskDependencies;
  readonly #platters = new Map<string, Platter>();
  /** The logs that the current life opened. */
  readonly #open = new Map<string, SimLog>();
  /**
   * A write beyond this capacity fails with `resource_exhausted`. It may change while the disk is in
   * use.
   */
  capacityBytes = Infinity;
  /** Whether a write has failed, in any life of the node. */
  hasFailed = false;

  constructor(deps: DiskDependencies) {
    this.#deps = deps;
  }

  /** Bytes on disk. */
  get usedBytes(): number {
    let used = 0;
    for (const { bytes } of this.#platters.values()) used += bytes;
    return used;
  }

  /**
   * Opens a log for one life of the node. @throws LeatError `failed_precondition` if it is open.
   */
  open(name: string, life: Life): Promise<DurableLog> {
    if (this.#open.get(name)?.isOpen === true) {
      const error = `The log "${name}" of ${life.node} is open already`;
      return Promise.reject(new LeatError("failed_precondition", error));
    }
    const empty: Platter = { snapshot: undefined, records: [], bytes: 0 };
    const platter = this.#platters.getOrInsert(name, empty);
    const log = new SimLog(this, platter, life, this.#deps);
    this.#open.set(name, log);
    return new Promise((resolve) => life.after(log.drawMs(), "log open", () => resolve(log)));
  }

  /** Cuts the power. A random prefix of the records that were not durable survives. */
  crash(): void {
    for (const log of this.#open.values()) log.crash();
    this.#open.clear();
  }
}

/** A write after which the log is durable up to a position. */
interface Write {
  /** Number of records that were appended before this write since the log was opened. */
  readonly upTo: number;
  readonly snapshot: Uint8Array | undefined;
  readonly resolve: () => void;
  readonly reject: (error: LeatError) => void;
}

class SimLog implements DurableLog {
  readonly #disk: SimDisk;
  readonly #platter: Platter;
  readonly #life: Life;
  readonly #deps: DiskDependencies;
  /** Appended but not durable records, oldest first. */
  #pending: Uint8Array[] = [];
  /** Number of records appended before the first of `#pending`. */
  #settled = 0;
  readonly #queue: Write[] = [];
  #writing: Write | undefined;
  #isOpen = true;
  #failure: LeatError | undefined;

  constructor(disk: SimDisk, platter: Platter, life: Life, deps: DiskDependencies) {
    this.#disk = disk;
    this.#platter = platter;
    this.#life = life;
    this.#deps = deps;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  drawMs(): number {
    const { diskSyncMinMs, diskSyncMaxMs } = this.#deps.faults();
    return this.#deps.random.between(diskSyncMinMs, diskSyncMaxMs);
  }

  read(): Promise<LogContents> {
    if (!this.#isOpen) return Promise.reject(closedError());
    return new Promise((resolve) =>
      this.#life.after(this.drawMs(), "log read", () => {
        const { snapshot, records } = this.#platter;
        resolve({ snapshot: snapshot?.slice(), records: records.map((record) => record.slice()) });
      })
    );
  }

  append(record: Uint8Array): void {
    if (!this.#life.alive) return;
    if (!this.#isOpen) throw closedError();
    if (this.#failure !== undefined) throw this.#failure;
    this.#pending.push(record);
  }

  sync(): Promise<void> {
    return this.#write(undefined);
  }

  compact(snapshot: Uint8Array): Promise<void> {
    return this.#write(snapshot.slice());
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    try {
      await this.sync();
    } finally {
      this.#isOpen = false;
    }
  }

  /** Cuts the power. A pending write survives completely, in part or not at all. */
  crash(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    const { random, counters } = this.#deps;
    const compacting = [this.#writing, ...this.#queue].find((write) => write?.snapshot);
    if (compacting !== undefined && compacting === this.#writing && random.chance(0.5)) {
      this.#store(compacting);
    }
    const survivors = this.#storeSome();
    if (this.#pending.length > 0) {
      counters.count(survivors === 0 ? "log_tail_lost" : "log_tail_torn");
    }
  }

  /** Stores a random prefix of the pending records, and returns how many. */
  #storeSome(): number {
    const survivors = this.#deps.random.int(this.#pending.length + 1);
    this.#keep(survivors);
    return survivors;
  }

  #write(snapshot: Uint8Array | undefined): Promise<void> {
    if (!this.#life.alive) return new Promise(() => {});
    if (!this.#isOpen) return Promise.reject(closedError());
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    const upTo = this.#settled + this.#pending.length;
    return new Promise((resolve, reject) => {
      this.#queue.push({ upTo, snapshot, resolve, reject });
      this.#begin();
    });
  }

  /** Starts the next write, unless one is in progress. It also completes the syncs that it covers. */
  #begin(): void {
    const write = this.#queue[0];
    if (this.#writing !== undefined || write === undefined) return;
    this.#writing = write;
    // A sync that begins now covers all records appended so far.
    const upTo = write.snapshot === undefined ? this.#settled + this.#pending.length : write.upTo;
    this.#life.after(this.drawMs() + this.#slowMs(), "log write", () => {
      this.#writing = undefined;
      this.#finish({ ...write, upTo });
      this.#begin();
    });
  }

  /** Draws the additional time of a write, which is rarely more than 0. */
  #slowMs(): number {
    const { random, counters, faults } = this.#deps;
    const { diskSlowProbability, diskSlowMaxMs } = faults();
    if (!random.chance(diskSlowProbability)) return 0;
    counters.count("disk_slow");
    return random.between(0, diskSlowMaxMs);
  }

  #finish(write: Write): void {
    const failure = this.#failure ?? this.#failureOf(write);
    if (failure !== undefined) {
      // After any other failure, the log accepts no more writes. A full disk may have space later.
      if (failure.code !== "resource_exhausted") this.#failure = failure;
      for (const { reject } of this.#queue.splice(0)) reject(failure);
      return;
    }
    this.#store(write);
    this.#queue.shift();
    write.resolve();
    while (
      this.#queue[0]?.snapshot === undefined && (this.#queue[0]?.upTo ?? Infinity) <= write.upTo
    ) {
      this.#queue.shift()!.resolve();
    }
  }

  /** Returns why a write fails: the disk is full or broken. `undefined` if the write succeeds. */
  #failureOf(write: Write): LeatError | undefined {
    const { random, counters, faults } = this.#deps;
    const wanted = (write.snapshot?.length ?? 0) +
      sizeOf(this.#pending.slice(0, write.upTo - this.#settled));
    if (this.#disk.usedBytes + wanted > this.#disk.capacityBytes) {
      counters.count("disk_full");
      this.#disk.hasFailed = true;
      return new LeatError(
        "resource_exhausted",
        `The disk of ${this.#life.node} is full (${this.#disk.capacityBytes} bytes)`,
      );
    }
    if (!random.chance(faults().diskErrorProbability)) return undefined;
    counters.count("disk_error");
    this.#disk.hasFailed = true;
    // The write may have stored some records before it failed.
    this.#storeSome();
    return new LeatError("data_loss", `The disk of ${this.#life.node} cannot be written`);
  }

  #store({ upTo, snapshot }: Write): void {
    const platter = this.#platter;
    this.#keep(Math.max(0, upTo - this.#settled));
    this.#settled = Math.max(this.#settled, upTo);
    if (snapshot === undefined) return;
    // An earlier sync may have written records appended after the snapshot was taken.
    const later = this.#settled - upTo;
    platter.snapshot = snapshot;
    platter.records = later === 0 ? [] : platter.records.slice(-later);
    platter.bytes = snapshot.length + sizeOf(platter.records);
  }

  /** Moves the oldest pending records to disk. */
  #keep(count: number): void {
    const kept = this.#pending.splice(0, count);
    this.#platter.records.push(...kept);
    this.#platter.bytes += sizeOf(kept);
  }
}

function sizeOf(records: readonly Uint8Array[]): number {
  return records.reduce((sum, { length }) => sum + length, 0);
}

function closedError(): LeatError {
  return new LeatError("failed_precondition", "The log is closed");
}
