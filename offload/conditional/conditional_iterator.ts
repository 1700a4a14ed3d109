/**
 * The conditional operator (FastFlow paper, section 5.3): takes each element from local CPUs or
 * from the workers of a service, according to the ratio.
 *
 * Both sides produce the same items from a split, so it does not matter which side gives an item.
 * If the service cannot finish a split, local CPUs run it from the item at which it stopped.
 */
import { LeatError } from "../../core/error.ts";
import type { Joined } from "../../data/deterministic/join.ts";
import { ElementIterator, END, type Pulled } from "../../data/iterator.ts";
import { ReadingFailure } from "../../data/iterators/reading_failure.ts";
import { type Carried, Remainders } from "./carried_rows.ts";
import type { ConditionalOptions } from "./conditional_options.ts";
import { Counters, divide } from "./counters.ts";
import { EpochSplits } from "./epoch_splits.ts";
import type { Item, Side } from "./items.ts";
import { DeliveredSplits } from "./ledger.ts";
import { LocalSide } from "./local_side.ts";
import { readySide, type SideName } from "./ready_side.ts";
import type { RemotePart } from "./remote_part.ts";
import { RemoteSide } from "./remote_side.ts";
import { SourceReader } from "./source_reader.ts";
import { SplitStats } from "./split_stats.ts";
import type { OpenUpper } from "./upper_part.ts";
import { WaitMeter } from "./wait_meter.ts";

/** How many batches, or single elements, local CPUs produce ahead of requests. */
const BATCHES_AHEAD = 2;
const ELEMENTS_AHEAD = 32;
/** Time until a service that failed is tried again, in ms. */
const RETRY_AFTER_MS = 10_000;
/**
 * Local CPUs take splits over only if the service has at least this many left. It gets new ones only
 * if they have at least twice as many.
 */
const MOVED_SPLITS_MIN = 4;
/**
 * A reader gets at most so many splits, and the next reader gets others: its request lists them, and
 * the dispatcher keeps the list in its journal.
 */
const SHARE_SPLITS_MAX = 32_768;

export class ConditionalIterator extends ElementIterator {
  readonly #options: ConditionalOptions;
  readonly #carried: Remainders;
  #begun: Promise<void> | undefined;
  #splits: EpochSplits | undefined;
  #digest: string | null = null;
  #ledger: DeliveredSplits | undefined;
  #part: RemotePart;
  /** The part that workers run from the next element on, if it changes. */
  #nextPart: RemotePart | undefined;
  #counters: Counters;
  #waits: WaitMeter;
  #local: LocalSide | undefined;
  #remote: RemoteSide | undefined;
  /** A reader that tries the service again. Local CPUs keep its splits until an element arrives. */
  #probed: RemoteSide | undefined;
  #retryAtMs = Infinity;
  /** The side that the ratio chose for the next element, if the other side gives it instead. */
  #avoided: SideName | undefined;
  #ended = false;
  #failure: ReadingFailure | undefined;

  constructor(options: ConditionalOptions) {
    super();
    this.#options = options;
    const { context, chain, seed, part } = options;
    this.#part = part;
    const { host, randomState: { epoch } } = context;
    this.#carried = new Remainders(chain, { host, seed, epoch, within: context });
    this.#counters = new Counters(part.ratio);
    this.#waits = new WaitMeter(() => host.nowMs());
  }

  /**
   * Lets workers run another part from the next element on. What they were preparing is prepared
   * again. The ledger keeps the training loop from getting an element twice.
   */
  change(part: RemotePart): void {
    this.#nextPart = part;
  }

  override next(): Pulled<unknown> {
    if (this.disposed || this.#ended) return END;
    if (this.#failure !== undefined) throw this.#failure;
    return this.#options.context.waitFor(this.#pull());
  }

  protected override saveState(): Promise<unknown> {
    return Promise.resolve({
      ended: this.#ended,
      digest: this.#digest,
      ledger: this.#ledger?.save() ?? null,
      carried: this.#carried.save(),
    });
  }

  protected override restoreState(state: unknown): Promise<void> {
    const { ended, digest, ledger, carried } = state as {
      readonly ended: boolean;
      readonly digest: string | null;
      readonly ledger: unknown;
      readonly carried: readonly Carried[];
    };
    this.#ended = ended;
    this.#digest = digest;
    if (ledger !== null) this.#ledger = DeliveredSplits.restored(ledger);
    this.#carried.restore(carried);
    return Promise.resolve();
  }

  protected override release(): void {
    this.#options.figures.readFrom(this.#remote?.tasks ?? 0);
    this.#local?.dispose();
    this.#remote?.dispose();
    this.#probed?.dispose();
  }

  async #pull(): Promise<unknown> {
    try {
      await (this.#begun ??= this.#begin());
      for (;;) {
        if (this.disposed) return END;
        // After the error of a row, the others may still fill a batch.
        const more = this.#carried.hasBatch ? await this.#carried.next() : undefined;
        if (more !== undefined) return this.#give(more);
        this.#applyChange();
        this.#retry();
        const wanted = this.#choose();
        if (wanted === undefined) return await this.#end();
        const side = this.#readySide(wanted);
        const item = await this.#waits.during(
          side,
          side === "local" ? this.#take(this.#local!) : this.#fromRemote(),
          side === "local" ? this.#remote : this.#local,
        );
        if (this.disposed) return END;
        if (item === undefined) continue;
        const given = await this.#accept(item, side);
        if (given !== undefined) return this.#give(given);
      }
    } catch (error) {
      if (this.disposed) return END;
      if (error instanceof ReadingFailure) throw this.#fail(error);
      throw error;
    }
  }

  /** Applies `change()`: workers begin the new part with a share of the splits that are left. */
  #applyChange(): void {
    const part = this.#nextPart;
    if (part === undefined) return;
    this.#nextPart = undefined;
    this.#part = part;
    this.#probed?.dispose();
    this.#probed = undefined;
    if (this.#remote !== undefined) this.#returnToLocal(this.#remote);
    else this.#use(undefined);
    const { figures } = this.#options;
    this.#counters = new Counters(part.ratio);
    figures.runs(part.candidate);
    figures.begin(part.ratio);
    this.#openShare();
  }

  /** Lists the splits, and divides those not yet delivered between the two sides. */
  async #begin(): Promise<void> {
    const { root, seed, chain, figures, context } = this.#options;
    const { host, settings, randomState: { epoch } } = context;
    const stats = context.partStats((nodes) => new SplitStats(nodes.map(({ kind }) => kind)));
    const { ratio } = this.#part;
    const listed = EpochSplits.list({ root, chain, seed, epoch, host, settings, stats });
    const splits = this.#splits = await listed;
    // `release()` has run: nothing would dispose what is opened below.
    if (this.disposed) return;
    splits.checkDigest(this.#digest);
    this.#digest = splits.digest;
    this.#ledger ??= new DeliveredSplits(splits.total);
    const { missing } = this.#ledger;
    this.#local = new LocalSide(missing, {
      host,
      aheadMax: chain.batch === undefined ? ELEMENTS_AHEAD : BATCHES_AHEAD,
      open: (sequence, events) => splits.open(sequence, events),
    });
    figures.begin(ratio);
    this.#open(this.#firstShareOf(missing));
  }

  #openRemote(sequences: readonly number[]): RemoteSide {
    const { timeoutMs, context: { host } } = this.#options;
    const { openRemote, readHere, lastRemote } = this.#part;
    const splits = this.#splits!;
    const { total, digest } = splits;
    const open = openRemote({ total, digest });
    const { workers } = this.#options;
    const report = () => ({
      offloadRatio: this.#counters.ratio,
      ...(workers === undefined ? {} : { offloadWorkers: workers }),
    });
    const source = readHere && new SourceReader((split) => splits.read(readHere, split));
    const openUpper: OpenUpper | undefined = lastRemote &&
      ((split, read, onRemainder) => splits.openUpper(lastRemote, split, read, onRemainder));
    return new RemoteSide(sequences, { host, open, timeoutMs, report, source, openUpper });
  }

  /** Sets the remote side, or that there is none. No window of measurements spans this change. */
  #use(remote: RemoteSide | undefined): void {
    this.#remote = remote;
    const { figures } = this.#options;
    if (figures.isMeasuring) {
      figures.supply = () => remote !== undefined && remote.tasks > 1 ? remote.supply : undefined;
    }
    this.#measureAnew();
    remote?.prepare();
  }

  #measureAnew(): void {
    const { host } = this.#options.context;
    this.#waits = new WaitMeter(() => host.nowMs());
  }

  /** The side of the next element; undefined at the end. */
  #choose(): SideName | undefined {
    const { first, total } = this.#ledger!;
    if (this.#options.keepsOrder) {
      if (first >= total) return undefined;
      return this.#remote?.owned.has(first) === true ? "remote" : "local";
    }
    const remote = this.#remote;
    if (remote === undefined) return this.#local!.isEmpty ? undefined : "local";
    if (this.#local!.isEmpty) this.#takeOver(remote);
    return this.#local!.isEmpty ? "remote" : this.#counters.next;
  }

  /**
   * The side that gives the next element: `wanted`; or, if the ratio may change, the other one where
   * it saves training a wait.
   */
  #readySide(wanted: SideName): SideName {
    const { control, savesCpu = false } = this.#part;
    const [local, remote] = [this.#local!, this.#remote];
    const isFree = control !== undefined && !this.#options.keepsOrder && !local.isEmpty;
    const side = isFree && remote !== undefined
      ? readySide(wanted, { local, remote }, savesCpu)
      : wanted;
    this.#avoided = side === wanted ? undefined : wanted;
    return side;
  }

  /** Local CPUs have nothing left: they take the last of the splits that the service has not finished. */
  #takeOver(remote: RemoteSide): void {
    const unfinished = [...remote.owned].sort((a, b) => a - b);
    const count = Math.floor(unfinished.length * (1 - this.#counters.ratio));
    if (unfinished.length < MOVED_SPLITS_MIN || count === 0) return;
    remote.keep(unfinished.slice(0, -count));
    this.#local!.add(unfinished.slice(-count));
  }

  async #fromRemote(): Promise<Item | undefined> {
    const remote = this.#remote!;
    try {
      const item = await this.#take(remote);
      // Disposing this iterator also ends the remote side.
      if (item === undefined && !this.disposed) this.#remoteEnded(remote);
      return item;
    } catch (error) {
      if (this.disposed) return undefined;
      this.#returnToLocal(remote);
      this.#useLocalOnly(LeatError.from(error));
      return undefined;
    }
  }

  async #take(side: Side): Promise<Item | undefined> {
    const item = await side.next();
    return item === END ? undefined : item;
  }

  /** The service has given all its splits: it gets a share of those that are left. */
  #remoteEnded(remote: RemoteSide): void {
    this.#returnToLocal(remote);
    this.#openShare();
  }

  /** Gives the service a share of the splits that were not begun, if there are enough. */
  #openShare(): void {
    const { queue } = this.#local!;
    const { ratio } = this.#counters;
    if (ratio === 0 || queue.length < 2 * MOVED_SPLITS_MIN) return;
    // With `keepsOrder`, splits keep their side: only what did not fit into the last share is left.
    const least = this.#options.keepsOrder ? 0 : MOVED_SPLITS_MIN;
    this.#open(shareOf(queue, Math.max(ratio, least / queue.length)));
  }

  /**
   * What the service gets of `queue` in an epoch, or after it was away. If the ratio is corrected, it
   * gets at least one split, or there would be no measurements to correct a small ratio by.
   */
  #firstShareOf(queue: readonly number[]): number[] {
    const { ratio } = this.#counters;
    const isCorrected = this.#part.control !== undefined && !this.#options.keepsOrder;
    const isRaised = isCorrected && ratio > 0 && queue.length > 1;
    return shareOf(queue, isRaised ? Math.max(ratio, 1 / queue.length) : ratio);
  }

  /** Lets the service prepare splits that were not begun. If it is away, `#retry` tries that first. */
  #open(share: readonly number[]): void {
    const { context: { host }, figures } = this.#options;
    if (share.length === 0) return;
    const nowMs = host.nowMs();
    if (figures.isAway(nowMs)) {
      this.#retryAtMs = nowMs;
      return;
    }
    try {
      this.#use(this.#openRemote(share));
      this.#local!.remove(share);
    } catch (error) {
      this.#useLocalOnly(LeatError.from(error));
    }
  }

  /** Local CPUs take the splits that the service has not finished. */
  #returnToLocal(remote: RemoteSide): void {
    const ledger = this.#ledger!;
    const unfinished = [...remote.owned].filter((at) => !ledger.isDone(at));
    this.#options.figures.readFrom(remote.tasks);
    remote.dispose();
    this.#use(undefined);
    if (unfinished.length === 0) return;
    // With `keepsOrder`, the returned splits come before the elements that were produced ahead.
    if (this.#options.keepsOrder) this.#local!.restart(ledger.missing);
    else this.#local!.add(unfinished);
  }

  #useLocalOnly(reason: LeatError): void {
    const { context: { host }, figures, address } = this.#options;
    this.#retryAtMs = host.nowMs() + RETRY_AFTER_MS;
    figures.fellBack(reason, host.nowMs());
    const what = figures.isMeasuring
      ? `failed while ${this.#part.candidate} was measured, so the plan leaves that out`
      : "cannot continue, so all elements are prepared here until it can";
    host.warn(`offload: the service at ${address} ${what}: ${reason.message}`);
  }

  /** After a while, tries a service that failed, and uses it again once an element arrives. */
  #retry(): void {
    const probed = this.#probed;
    if (probed !== undefined) {
      if (probed.failure !== undefined) {
        probed.dispose();
        this.#probed = undefined;
        this.#stillAway();
      } else if (probed.hasReceived) this.#resumeService(probed);
      return;
    }
    const { context: { host } } = this.#options;
    if (this.#remote !== undefined || host.nowMs() < this.#retryAtMs) return;
    this.#retryAtMs = host.nowMs() + RETRY_AFTER_MS;
    const share = this.#firstShareOf(this.#local!.queue);
    if (share.length === 0) return;
    try {
      this.#probed = this.#openRemote(share);
      this.#probed.probe();
      this.#retryAtMs = Infinity;
    } catch {
      this.#stillAway();
    }
  }

  /** A try has failed: the next one follows. An epoch that begins before its end does not wait, either. */
  #stillAway(): void {
    const { timeoutMs, figures, context: { host } } = this.#options;
    this.#retryAtMs = host.nowMs() + RETRY_AFTER_MS;
    figures.stillAway(host.nowMs(), 2 * RETRY_AFTER_MS + timeoutMs);
  }

  #resumeService(remote: RemoteSide): void {
    this.#probed = undefined;
    this.#options.figures.resumed();
    remote.keep(this.#local!.remove([...remote.owned]));
    if (remote.owned.size === 0) {
      remote.dispose();
      return this.#openShare();
    }
    this.#use(remote);
    // New counters: otherwise the service would have to make up for the time in which it was away.
    this.#counters = new Counters(this.#counters.ratio);
  }

  /** Notes an item. Returns what the training loop gets for it, if anything. */
  async #accept(item: Item, side: SideName): Promise<Joined | undefined> {
    const { sequence, split, index } = item.place;
    const ledger = this.#ledger!;
    let given: Joined | undefined;
    if (item.kind === "element" || item.kind === "error") {
      if (!ledger.note(sequence, index)) return undefined;
      given = item.kind === "element" ? { element: item.element } : { error: item.error };
    } else {
      if (side === "remote") this.#finishedBy(this.#remote!, sequence);
      if (!ledger.finish(sequence)) return undefined;
      if (item.kind === "remainder") {
        this.#carried.add(sequence, split, item.rows);
        given = await this.#carried.next();
      }
    }
    if (given === undefined) return undefined;
    // If the side that was not wanted gave it, it does not count: the wanted side need not catch up.
    if (this.#avoided === undefined) this.#counters.count(side);
    else this.#waits.avoided(this.#avoided);
    this.#correct();
    if (side === "remote") this.#options.figures.resumed();
    this.#options.figures.count(side, "element" in given ? given.element : undefined);
    return given;
  }

  #finishedBy(remote: RemoteSide, sequence: number): void {
    remote.finished(sequence);
    if (remote.owned.size === 0) this.#remoteEnded(remote);
  }

  /** Corrects the ratio, depending on which side training waits for. */
  #correct(): void {
    const { keepsOrder, figures } = this.#options;
    const { control } = this.#part;
    const remote = this.#remote;
    const wasOff = this.#counters.ratio === 0;
    // While the service is away there is nothing to correct. With ratio 0 it is unused on purpose.
    if (control === undefined || keepsOrder || remote === undefined && !wasOff) return;
    if (remote !== undefined && this.#isAllGiven(remote)) return this.#measureAnew();
    const window = this.#waits.count(remote && (() => remote.supply));
    if (window === undefined || !control.observe(window)) return;
    this.#counters = new Counters(control.ratio);
    figures.corrected(control.ratio);
    if (remote !== undefined && control.ratio === 0) this.#returnToLocal(remote);
    else if (wasOff) this.#openShare();
  }

  /**
   * Whether workers have all splits that are left, and too few for this host to take any over. Training
   * then waits for workers whatever the ratio is.
   */
  #isAllGiven(remote: RemoteSide): boolean {
    return this.#local!.isEmpty && remote.owned.size < MOVED_SPLITS_MIN;
  }

  async #end(): Promise<unknown> {
    const last = await this.#carried.end();
    if (last === undefined || this.#carried.isEmpty) {
      this.#ended = true;
      this.release();
    }
    return last === undefined ? END : this.#give(last);
  }

  #give(given: Joined): unknown {
    const { stats } = this.#options.context;
    if ("error" in given) throw stats.failed(given.error);
    return stats.gave(given.element);
  }

  #fail(failure: ReadingFailure): ReadingFailure {
    this.release();
    return this.#failure = failure;
  }
}

/** The splits that the next reader gets. */
function shareOf(queue: readonly number[], ratio: number): number[] {
  return divide(queue, ratio).remote.slice(0, SHARE_SPLITS_MAX);
}
