/** The iterator of `dataset.offload(…)`: plans if no plan is given, then runs the conditional operator. */
import type { ServiceAccess } from "../actors/client/access.ts";
import { LeatError } from "../core/error.ts";
import type { IteratorContext } from "../data/context.ts";
import { refuseForeignService } from "../data/foreign/foreign.ts";
import { ElementIterator, END, type Pulled } from "../data/iterator.ts";
import { ReadingFailure } from "../data/iterators/reading_failure.ts";
import type { OffloadChoice, OffloadNode } from "../data/operators/offload.ts";
import { withSeed } from "../data/operators/options.ts";
import { Adaptation, knownAdaptation, setAdaptation, workersOf } from "./adaptation.ts";
import { ConditionalIterator } from "./conditional/conditional_iterator.ts";
import type { ConditionalOptions } from "./conditional/conditional_options.ts";
import type { RemotePart } from "./conditional/remote_part.ts";
import {
  type CutPoint,
  type CutPoints,
  cutPointsOf,
  type Exchange,
  exchangeOf,
  withStandIns,
} from "./cut_points.ts";
import { EpochMeter } from "./epoch_meter.ts";
import { figuresOf } from "./figures.ts";
import { OffloadPlan } from "./plan.ts";
import { addressOf, plan, type PlanRequest } from "./planner.ts";
import { remoteReader, seedFor } from "./remote_reader.ts";

const TIMEOUT_MS = 30_000;
/** A service that could not be reached for a plan counts as away for so many times the planning time. */
const AWAY_PER_PLANNING = 4;

/** Makes the iterator of an `offload` node. */
export function offloadedIterator(
  node: OffloadNode,
  context: IteratorContext,
  access: ServiceAccess,
): ElementIterator {
  refuseForeignService(node, context.host);
  return new OffloadedIterator(node, context, access);
}

/** How a saved epoch runs: its position has the form of the operators that run it. */
interface SavedEpoch {
  /** The epoch's first candidate, if others can replace it. */
  readonly from: string | null;
  /** Whether the conditional operator replaces operators. It also runs with a ratio of 0. */
  readonly hasConditional: boolean;
}

class OffloadedIterator extends ElementIterator {
  readonly #node: OffloadNode;
  readonly #context: IteratorContext;
  readonly #access: ServiceAccess;
  /** Undefined: the plan is followed unchanged. */
  #adaptation: Adaptation | undefined;
  #choice: OffloadChoice | undefined;
  #input: ElementIterator | undefined;
  #meter: EpochMeter | undefined;
  /** How often the service had failed when the epoch or period began. */
  #fallbacks = 0;
  /** The candidates that can replace each other within this epoch, and the one that it began with. */
  #exchange: (Exchange & { readonly from: string }) | undefined;
  /** Whether the conditional operator replaces operators of this epoch. */
  #hasConditional = false;
  /** The conditional operator and its context. Undefined if nothing reads it: a cache is complete. */
  #running:
    | { readonly iterator: ConditionalIterator; readonly context: IteratorContext }
    | undefined;
  readonly #closing = new AbortController();
  /** Whether the candidate is new, so that its ratio is not settled yet. */
  #isSettling = true;
  /** Whether the candidate has changed in this epoch. */
  #hasChanged = false;

  constructor(node: OffloadNode, context: IteratorContext, access: ServiceAccess) {
    super();
    this.#node = node;
    this.#context = context;
    this.#access = access;
  }

  override next(): Pulled<unknown> {
    if (this.disposed) return END;
    if (this.#input === undefined) return this.#start();
    const input = this.#input;
    const meter = this.#meter;
    // The conditional operator counts the elements of both sides itself.
    if (meter === undefined && this.#hasConditional) return input.next();
    const given = meter === undefined ? input.next() : meter.during(() => input.next());
    return given instanceof Promise
      ? given.then((given) => this.#counted(given))
      : this.#counted(given);
  }

  protected override async saveState(): Promise<unknown> {
    const choice = this.#choice;
    const from = this.#exchange?.from ?? null;
    const hasConditional = this.#hasConditional;
    if (this.#input === undefined || choice === undefined) {
      return { choice: null, from, hasConditional, input: null };
    }
    const { candidate } = choice;
    const ratio = candidate === null
      ? 0
      : this.#adaptation?.controlOf(candidate).ratio ?? choice.ratio;
    const input = await this.#input.save();
    return { choice: { candidate, ratio }, from, hasConditional, input };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    const { choice, input, ...saved } = state as SavedEpoch & {
      readonly choice: OffloadChoice | null;
      readonly input: unknown;
    };
    if (choice !== null) await this.#begin(choice, saved).restore(input);
  }

  protected override release(): void {
    this.#closing.abort(new LeatError("cancelled", "The iterator was closed"));
    this.#input?.dispose();
  }

  async #start(): Promise<unknown> {
    const { plan = figuresOf(this.#node).plan } = this.#node.options;
    const known = knownAdaptation(this.#node);
    const choice = await this.#planAgain(known) ?? known?.choice ?? plan ?? await this.#plan();
    if (this.disposed) return END;
    this.#begin(choice);
    return await this.next();
  }

  #counted(given: unknown): unknown {
    if (given === END) {
      if (this.#meter !== undefined) this.#endMeasuring(this.#meter);
      return given;
    }
    this.#meter?.count(given);
    if (!this.#hasConditional) figuresOf(this.#node).count("local", given);
    else if (this.#exchange !== undefined) this.#considerChange(this.#exchange);
    return given;
  }

  /** Judges the candidate by the figures of the epoch, or of its last period. */
  #endMeasuring(meter: EpochMeter): void {
    const figures = meter.read();
    this.#meter = undefined;
    const isCached = this.#hasConditional && this.#running === undefined;
    // Right after a change the ratio is not settled.
    const isUnsettled = this.#isSettling && this.#hasChanged;
    if (!this.#hasFailed() && !isUnsettled && !isCached) this.#adaptation!.ended(figures);
  }

  /** After a period, changes to another candidate if that one promises more. */
  #considerChange({ candidates }: Exchange): void {
    const running = this.#running;
    if (running === undefined) return;
    const adaptation = this.#adaptation!;
    const { period } = adaptation;
    const figures = this.#meter!.read();
    if (figures.batches < period.batches || figures.elapsedMs < period.ms) return;
    this.#meter = this.#meter!.next();
    const isMeasured = !this.#isSettling && !this.#hasFailed();
    this.#isSettling = false;
    if (!isMeasured || !adaptation.periodEnded(figures, new Set([null, ...candidates.keys()]))) {
      return;
    }
    this.#isSettling = this.#hasChanged = true;
    const choice = this.#choice = adaptation.choice;
    running.iterator.change(this.#partOf(choice, running.context));
  }

  /** Whether the service failed since the last call, or is away: no time to judge the candidate. */
  #hasFailed(): boolean {
    const { fallbacks, state, ratio } = figuresOf(this.#node).read();
    const hasFailed = fallbacks !== this.#fallbacks || state === "local" && ratio > 0;
    this.#fallbacks = fallbacks;
    return hasFailed;
  }

  #newMeter(): EpochMeter {
    return new EpochMeter(() => this.#context.host.nowMs());
  }

  /** Makes the first plan. If planning fails, the iterator itself shows what is wrong with the input. */
  async #plan(): Promise<OffloadChoice> {
    try {
      return await this.#context.waitFor(this.#decide(this.#node.options));
    } catch (error) {
      if (!this.disposed) {
        const { message } = LeatError.from(error);
        this.#context.host.warn(`offload: planning failed, so this epoch runs here: ${message}`);
      }
      return { candidate: null, ratio: 0 };
    }
  }

  /**
   * Plans again if the last plan offloaded nothing, and training has begun to wait for data; not while
   * the service counts as away.
   */
  async #planAgain(known: Adaptation | undefined): Promise<OffloadChoice | undefined> {
    const how = known?.planAgain;
    const isAway = figuresOf(this.#node).isAway(this.#context.host.nowMs());
    if (how === undefined || isAway || cutsOf(this.#node).candidates.length === 0) return undefined;
    try {
      const planned = await this.#context.waitFor(this.#decide(how));
      setAdaptation(this.#node, undefined);
      return planned;
    } catch (error) {
      if (this.disposed) return undefined;
      const { message } = LeatError.from(error);
      this.#context.host.warn(`offload: training waits, but planning again failed: ${message}`);
      return undefined;
    }
  }

  /** Makes a plan, and shows it in the node's figures. */
  async #decide(how: Pick<PlanRequest, "stepMs" | "speedUpThreshold">): Promise<OffloadChoice> {
    const { inputs: [pipeline], options } = this.#node;
    const { plan: _, stepMs: __, adapt: ___, ...others } = options;
    const { profileSteps, planningTimeoutMs, ...service } = others;
    const { host } = this.#context;
    const figures = figuresOf(this.#node);
    try {
      const decided = await plan({
        pipeline: withSeed(pipeline!, this.#context.chosenSeedOf(this.#node)),
        ...{ service, host, profileSteps, planningTimeoutMs },
        ...{ stepMs: how.stepMs, speedUpThreshold: how.speedUpThreshold },
        signal: this.#closing.signal,
        onProgress: (progress) => figures.plans(progress),
      });
      figures.planned(decided);
      if (!decided.isUnreached) figures.resumed();
      return decided;
    } finally {
      figures.plans(undefined);
    }
  }

  /** Opens the input with the conditional operator in it, or the whole input if nothing is offloaded. */
  #begin(choice: OffloadChoice, saved?: SavedEpoch): ElementIterator {
    const { plan, adapt = plan === undefined, deterministic = false } = this.#node.options;
    const figures = figuresOf(this.#node);
    if (adapt && !deterministic) {
      this.#adaptation = this.#adaptationFor(choice);
      this.#meter = this.#newMeter();
      this.#fallbacks = figures.read().fallbacks;
    }
    this.#choice = choice;
    const { candidate } = choice;
    const control = this.#adaptation?.begin(choice, saved !== undefined);
    const workers = this.#adaptation?.workers ?? workersOf(plan);
    figures.runs(candidate);
    const from = saved === undefined && this.#adaptation?.hasChoice === true
      ? candidate
      : saved?.from;
    const exchange = from == null ? undefined : this.#exchangeFrom(from);
    // With `deterministic` the order is that of the splits, also if this host prepares them all.
    const isOffloaded = saved?.hasConditional ??
      (choice.ratio > 0 || control !== undefined || deterministic);
    const cut = exchange ??
      (candidate !== null && isOffloaded ? findCut(cutsOf(this.#node), candidate) : undefined);
    this.#hasConditional = cut !== undefined;
    if (cut !== undefined) {
      warnOfDisorder(this.#node, this.#context);
      this.#context.replace(cut.original(cut.root), (context) => {
        // A repetition begins with the candidate that the repetition before it ended with.
        const part = this.#partOf(this.#choice!, context);
        const iterator = conditional(this.#node, cut, { part, workers, context });
        this.#running = { iterator, context };
        return iterator;
      });
    }
    return this.#input = this.#context.passInput();
  }

  /**
   * The adaptation that all iterators of the node share. If a restored epoch has no plan, it has its
   * own: the next epoch makes a plan.
   */
  #adaptationFor(choice: OffloadChoice): Adaptation {
    const known = knownAdaptation(this.#node);
    if (known !== undefined) return known;
    const plan = choice instanceof OffloadPlan ? choice : this.#node.options.plan;
    const adaptation = new Adaptation(plan ?? choice);
    if (plan !== undefined) setAdaptation(this.#node, adaptation);
    if (plan instanceof OffloadPlan && plan.isUnreached) {
      const leastMs = AWAY_PER_PLANNING * plan.planningMs;
      figuresOf(this.#node).wentAway(this.#context.host.nowMs(), leastMs);
    }
    return adaptation;
  }

  #exchangeFrom(from: string): Exchange | undefined {
    const cuts = cutsOf(this.#node);
    const exchange = exchangeOf(findCut(cuts, from), cuts);
    this.#exchange = exchange && { ...exchange, from };
    return exchange;
  }

  /** The part that workers run for a choice. */
  #partOf(choice: OffloadChoice, context: IteratorContext): RemotePart {
    const { candidate } = choice;
    if (candidate === null) return NOTHING_REMOTE;
    const control = this.#adaptation?.controlOf(candidate);
    const cut = this.#exchange?.candidates.get(candidate) ?? findCut(cutsOf(this.#node), candidate);
    const { root, chain } = this.#exchange ?? cut;
    const part = { ...cut, root: withStandIns(root, cut.root), isShuffled: chain.shuffled };
    return {
      ...{ candidate, ratio: control?.ratio ?? choice.ratio, control, readHere: cut.readHere },
      lastRemote: cut.root === root ? undefined : cut.root,
      savesCpu: this.#adaptation?.savesCpu(candidate) ?? false,
      openRemote: (table) =>
        remoteReader(
          this.#node.options,
          part,
          { seed: seedFor(this.#node, context), context, table },
          this.#access,
        ),
    };
  }
}

const NOTHING_REMOTE: RemotePart = {
  ...{ candidate: null, ratio: 0 },
  openRemote: () => {
    throw new LeatError("internal", "Nothing is offloaded now");
  },
};

const cutsByNode = new WeakMap<OffloadNode, CutPoints>();

function cutsOf(node: OffloadNode): CutPoints {
  const { inputs: [input], options: { deterministic } } = node;
  return cutsByNode.getOrInsertComputed(node, () => cutPointsOf(input!, deterministic));
}

/** Warns in the first epoch if operators that need the order of elements were told to do without. */
function warnOfDisorder(
  node: OffloadNode,
  { host, randomState: { epoch } }: IteratorContext,
): void {
  const { ordered } = cutsOf(node);
  if (node.options.deterministic !== false || epoch > 0 || ordered.length === 0) return;
  host.warn(
    `offload: with deterministic: false elements change their order before ${
      ordered.join(", ")
    }, so ` +
      "the result differs from a local run. Leave the option out: then the order is kept",
  );
}

/** @throws {ReadingFailure} `failed_precondition` for a plan of another pipeline. */
function findCut({ candidates, refused }: CutPoints, candidate: string): CutPoint {
  const found = candidates.find(({ name }) => name === candidate);
  if (found !== undefined) return found;
  const names = candidates.map(({ name }) => name).join(", ");
  throw new ReadingFailure(
    new LeatError(
      "failed_precondition",
      `offload: this pipeline has no candidate "${candidate}"; it has ${names || "none"}` +
        refused.map((reason) => `. ${reason}`).join(""),
    ),
  );
}

function conditional(
  node: OffloadNode,
  { root, chain, keepsOrder = false }: Pick<CutPoint, "root" | "chain"> & {
    readonly keepsOrder?: boolean;
  },
  how: Pick<ConditionalOptions, "part" | "workers" | "context">,
): ConditionalIterator {
  const { deterministic = false, timeoutMs = TIMEOUT_MS, service } = node.options;
  return new ConditionalIterator({
    ...{ ...how, root, chain, timeoutMs },
    seed: seedFor(node, how.context),
    keepsOrder: keepsOrder || deterministic,
    figures: figuresOf(node),
    address: addressOf(service),
  });
}
