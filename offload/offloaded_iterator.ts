/**
 * The iterator behind `dataset.offload(…)`: plans once, if no plan is given, and then runs the
 * conditional operator.
 */
import type { ServiceAccess } from "../actors/client/access.ts";
import { clientOptions, definitionOf } from "../actors/client/starting.ts";
import { LeatError } from "../core/error.ts";
import type { IteratorContext } from "../data/context.ts";
import { refuseForeignService } from "../data/foreign/foreign.ts";
import { ElementIterator, END, type Pulled } from "../data/iterator.ts";
import { ReadingFailure } from "../data/iterators/reading_failure.ts";
import type { OffloadChoice, OffloadNode, OffloadOptions } from "../data/operators/offload.ts";
import type { DatasetNode } from "../data/node.ts";
import { digestOfSplits, packSplits } from "../data/sharding/split_table.ts";
import { cutFiles } from "../data/sharding/splits.ts";
import { seedOf } from "../data/operators/options.ts";
import { Adaptation, EpochMeter, workersOf } from "./adaptation.ts";
import {
  ConditionalIterator,
  type ConditionalOptions,
} from "./conditional/conditional_iterator.ts";
import type { OpenRemote } from "./conditional/remote_side.ts";
import { type CutPoint, cutPointsOf, withoutSource } from "./cut_points.ts";
import { figuresOf } from "./figures.ts";
import { OffloadPlan } from "./plan.ts";
import { addressOf, plan, type PlanRequest } from "./planner.ts";
import { given } from "../core/tree.ts";

const TIMEOUT_MS = 30_000;

/** Makes the iterator of an `offload` node. */
export function offloadedIterator(
  node: OffloadNode,
  context: IteratorContext,
  access: ServiceAccess,
): ElementIterator {
  refuseForeignService(node, context.host);
  return new OffloadedIterator(node, context, access);
}

class OffloadedIterator extends ElementIterator {
  readonly #node: OffloadNode;
  readonly #context: IteratorContext;
  readonly #access: ServiceAccess;
  /** Left out: the plan is followed as it is. */
  #adaptation: Adaptation | undefined;
  #choice: OffloadChoice | undefined;
  #input: ElementIterator | undefined;
  #meter: EpochMeter | undefined;
  /** How often the service had failed when the epoch began. */
  #fallbacks = 0;

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
    if (this.#meter === undefined) return input.next();
    const given = this.#meter.during(() => input.next());
    return given instanceof Promise
      ? given.then((given) => this.#counted(given))
      : this.#counted(given);
  }

  protected override async saveState(): Promise<unknown> {
    const choice = this.#choice;
    if (this.#input === undefined || choice === undefined) return { choice: null, input: null };
    const { candidate } = choice;
    const ratio = candidate === null
      ? 0
      : this.#adaptation?.controlOf(candidate).ratio ?? choice.ratio;
    return { choice: { candidate, ratio }, input: await this.#input.save() };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    const { choice, input } = state as {
      readonly choice: OffloadChoice | null;
      readonly input: unknown;
    };
    if (choice !== null) await this.#begin(choice, true).restore(input);
  }

  protected override release(): void {
    this.#input?.dispose();
  }

  async #start(): Promise<unknown> {
    const { plan } = this.#node.options;
    const known = adaptations.get(this.#node);
    const choice = await this.#planAgain(known) ?? known?.choice ?? plan ??
      await this.#context.waitFor(this.#decide(this.#node.options));
    if (this.disposed) return END;
    this.#begin(choice, false);
    return await this.next();
  }

  #counted(given: unknown): unknown {
    if (given !== END) {
      this.#meter!.count(given);
      if (this.#choice!.candidate === null) figuresOf(this.#node).count("local", given);
    } else {
      // The throughput of an epoch in which the service failed is not that of its candidate.
      const { fallbacks } = figuresOf(this.#node).read();
      if (fallbacks === this.#fallbacks) this.#adaptation!.ended(this.#meter!.read());
      this.#meter = undefined;
    }
    return given;
  }

  /** If nothing was offloaded, and training has come to wait for data. */
  async #planAgain(known: Adaptation | undefined): Promise<OffloadChoice | undefined> {
    const how = known?.planAgain;
    const { inputs: [pipeline] } = this.#node;
    if (how === undefined || cutPointsOf(pipeline!).candidates.length === 0) return undefined;
    adaptations.delete(this.#node);
    try {
      return await this.#context.waitFor(this.#decide(how));
    } catch (error) {
      const { message } = LeatError.from(error);
      this.#context.host.warn(`offload: training waits, but planning again failed: ${message}`);
      return undefined;
    }
  }

  /** Measures, and says what it has decided. */
  async #decide(how: Pick<PlanRequest, "stepMs" | "speedUpThreshold">): Promise<OffloadChoice> {
    const { inputs: [pipeline], options } = this.#node;
    const { plan: _, stepMs: __, profileSteps, deterministic: ___, adapt: ____, ...service } =
      options;
    const { host } = this.#context;
    const decided = await plan({
      ...{ pipeline: pipeline!, service, host, profileSteps },
      ...{ stepMs: how.stepMs, speedUpThreshold: how.speedUpThreshold },
    });
    figuresOf(this.#node).planned(decided);
    return decided;
  }

  /** @param isSaved whether the choice is that of a saved position. */
  #begin(choice: OffloadChoice, isSaved: boolean): ElementIterator {
    const { plan, adapt = plan === undefined, deterministic = false } = this.#node.options;
    const figures = figuresOf(this.#node);
    if (adapt && !deterministic) {
      this.#adaptation = adaptationOf(
        this.#node,
        choice instanceof OffloadPlan ? choice : plan ?? choice,
      );
      this.#meter = new EpochMeter(() => this.#context.host.nowMs());
      this.#fallbacks = figures.read().fallbacks;
    }
    this.#choice = choice;
    const { candidate } = choice;
    const control = this.#adaptation?.begin(choice, isSaved);
    const workers = this.#adaptation?.workers ?? workersOf(plan);
    figures.runs(candidate);
    if (candidate !== null && (choice.ratio > 0 || control !== undefined)) {
      const cut = findCut(this.#node, candidate);
      const ratio = control?.ratio ?? choice.ratio;
      this.#context.replace(
        cut.root,
        (context) =>
          conditional(this.#node, cut, { ratio, control, workers }, context, this.#access),
      );
    }
    return this.#input = this.#context.passInput();
  }
}

const adaptations = new WeakMap<OffloadNode, Adaptation>();

/** What the iterators of a node have learnt so far. */
function adaptationOf(node: OffloadNode, choice: OffloadChoice): Adaptation {
  let adaptation = adaptations.get(node);
  if (adaptation === undefined) adaptations.set(node, adaptation = new Adaptation(choice));
  return adaptation;
}

/** @throws {ReadingFailure} `failed_precondition` for a plan of another pipeline. */
function findCut({ inputs: [input] }: OffloadNode, candidate: string): CutPoint {
  const { candidates, refused } = cutPointsOf(input!);
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
  { root, chain, keepsOrder, readHere }: CutPoint,
  how: Pick<ConditionalOptions, "ratio" | "control" | "workers">,
  context: IteratorContext,
  access: ServiceAccess,
): ElementIterator {
  const { deterministic = false, timeoutMs = TIMEOUT_MS, service } = node.options;
  const seed = seedOf(node) ?? (deterministic ? 0n : drawnSeed(context));
  return new ConditionalIterator({
    ...{ ...how, context, root, chain, seed, timeoutMs, readHere },
    keepsOrder: keepsOrder || deterministic,
    figures: figuresOf(node),
    address: addressOf(service),
    openRemote: (table) =>
      remoteReader(node.options, { root, chain, readHere }, { seed, context, table }, access),
  });
}

/** The same for a restored iteration, whose random state is restored. */
function drawnSeed({ randomState }: IteratorContext): bigint {
  const [low, high] = randomState.root().fork("offload").name;
  return BigInt.asUintN(64, BigInt(low) << 32n ^ BigInt(high >>> 0));
}

/** Reads chosen splits of a DETERMINISTIC job of its own. */
function remoteReader(
  { service, token, ca, compression, targetTags }: OffloadOptions,
  { root, chain, readHere }: Pick<CutPoint, "root" | "chain"> & {
    readHere: DatasetNode | undefined;
  },
  { seed, context, table }: {
    readonly seed: bigint;
    readonly context: IteratorContext;
    readonly table: { readonly total: number; readonly digest: string };
  },
  access: ServiceAccess,
): OpenRemote {
  const { total } = table;
  const expectedDigest = readHere === undefined
    ? table.digest
    : digestOfSplits(packSplits([cutFiles(total)]));
  const reading = clientOptions(
    definitionOf(readHere === undefined ? root : withoutSource(root, readHere, total), compression),
    {
      service,
      processingMode: "DETERMINISTIC",
      ...(targetTags === undefined ? {} : { targetTags }),
    },
    context.randomState.epoch,
  );
  const ordered = {
    seed: BigInt.asUintN(64, seed).toString(16).padStart(16, "0"),
    shuffled: chain.shuffled,
  };
  const credentials = given({ token, ca });
  // For the service this is a restored reader that is at the end, and lacks some earlier splits.
  return (sequences, feed) =>
    access.read(service, credentials, {
      ...reading,
      parameters: { ...reading.parameters, ordered },
      ordered: { startAt: total, behind: sequences, expectedDigest },
    }, feed);
}
