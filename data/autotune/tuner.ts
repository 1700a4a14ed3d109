/**
 * The tuner of one iteration: at growing intervals it models the running pipeline, and sets the
 * knobs to the model's best settings. It has no timer: the iterator calls it between two elements.
 */
import type { Host } from "../host.ts";
import type { OperatorFigures, TuningStats } from "../iterators/stats.ts";
import { type Budgets, climb } from "./hill_climbing.ts";
import { Knob, type KnobParameter, type KnobRange } from "./knob.ts";
import { type Measured, stageOf } from "./measured_model.ts";
import { outputLatencyMs, type Stage } from "./model.ts";

/** The time until the first decision. It doubles with each decision, up to `PERIOD_MAX_MS`. */
const PERIOD_FIRST_MS = 10;
const PERIOD_MAX_MS = 5_000;
/**
 * An input that does nothing for this long counts as ended: a cache may have all of its elements.
 */
const IDLE_MS = 1_000;
/** The clock is read at least once in this many calls. */
const CALLS_PER_CHECK_MAX = 64;
/** About the time between two clock reads, in ms. More reads would cost too much. */
const CHECK_MS = 1;

/** How the consumer has used the iterator, in total. */
export interface Consumption {
  /** How long the consumer was busy between two elements, in ms. */
  readonly consumerMs: number;
  /** How long it waited for elements, in ms. */
  readonly waitedMs: number;
}

/** Sets knobs; for tests, instead of the model. */
export type TuningPolicy = (knobs: readonly Knob[]) => void;

export interface TunerOptions {
  readonly budgets: Budgets;
  /** Whether knobs keep their first values. */
  readonly isOff: boolean;
  readonly policy?: TuningPolicy | undefined;
}

/** What the model expected of one knob's value, and what was measured before. */
interface Belief {
  /** The output latency that the model expected when the knob was set, in ms. */
  readonly expectedMs: number;
  /** The time that the consumer of the operator waited in the same period, in ms an element. */
  readonly measuredMs: number;
}

/** The bytes that the buffers of one pipeline's tuned operators hold, and their limit. */
export class RamBudget {
  readonly bytesMax: number;
  #heldBytes = 0;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Notes that this many more bytes are held. */
  holds(bytes: number): void {
    this.#heldBytes += bytes;
  }

  /** Whether one more element of this size fits. */
  fits(bytes: number): boolean {
    return this.#heldBytes + bytes <= this.bytesMax;
  }
}

export class Tuner {
  /** The bytes in buffers of operators with `AUTOTUNE`. */
  readonly ram: RamBudget;
  readonly #host: Host;
  readonly #options: TunerOptions;
  readonly #pipeline: () => Measured;
  readonly #knobs: Knob[] = [];
  readonly #beliefs = new Map<Knob, Belief>();
  /** Figures at the last decision, by operator number. */
  #last = new Map<OperatorFigures["number"], OperatorFigures>();
  #lastWaitedMs = 0;
  readonly #pace = new ConsumerPace();
  #periodMs = PERIOD_FIRST_MS;
  #decideAtMs = -Infinity;
  #checkedAtMs = -Infinity;
  #callsPerCheck = 1;
  #callsLeft = 1;

  /** `pipeline` gives the figures of the operators. */
  constructor(host: Host, options: TunerOptions, pipeline: () => Measured) {
    this.#host = host;
    this.#options = options;
    this.#pipeline = pipeline;
    this.ram = new RamBudget(options.budgets.ramBytes);
  }

  /** A new knob. All knobs of calls begin with at most an equal share of the CPU budget. */
  knob(parameter: KnobParameter, range: KnobRange, operator?: object): Knob {
    const knob = new Knob(parameter, range, this.#options.isOff ? undefined : operator);
    this.#knobs.push(knob);
    this.#periodMs = PERIOD_FIRST_MS; // the structure of the pipeline has changed
    this.#shareCpuBudget();
    return knob;
  }

  /** A knob that keeps its first value, and that shares no CPU budget with the others. */
  constant(parameter: KnobParameter, range: KnobRange): Knob {
    const { cpu } = this.#options.budgets;
    const initial = parameter === "numParallelCalls" ? Math.min(range.initial, cpu) : range.initial;
    return new Knob(parameter, { ...range, initial });
  }

  #shareCpuBudget(): void {
    if (this.#options.isOff) return;
    const calls = this.#knobs.filter(({ parameter }) => parameter === "numParallelCalls");
    const share = Math.max(1, Math.floor(this.#options.budgets.cpu / calls.length));
    for (const knob of calls) knob.value = Math.min(knob.value, share);
  }

  /** Whether there is nothing to tune. */
  get isIdle(): boolean {
    return this.#knobs.length === 0 || this.#options.isOff;
  }

  /** Called once for each element; decides when it is time. */
  tick(consumption: () => Consumption): void {
    if (--this.#callsLeft > 0 || this.isIdle) return;
    if (this.#options.policy !== undefined) return this.#options.policy(this.#knobs);
    const now = this.#host.nowMs();
    const used = consumption();
    this.#pace.note(used.consumerMs, this.#callsPerCheck);
    const isOften = now - this.#checkedAtMs < CHECK_MS;
    this.#callsPerCheck = isOften ? Math.min(2 * this.#callsPerCheck, CALLS_PER_CHECK_MAX) : 1;
    this.#callsLeft = this.#callsPerCheck;
    this.#checkedAtMs = now;
    if (this.#decideAtMs === -Infinity) this.#decideAtMs = now + this.#periodMs;
    if (now < this.#decideAtMs) return;
    this.#decide(used.waitedMs);
    this.#periodMs = Math.min(2 * this.#periodMs, PERIOD_MAX_MS);
    this.#decideAtMs = now + this.#periodMs;
  }

  #decide(totalWaitedMs: number): void {
    const total = this.#pipeline();
    const recent = since(this.#last, total);
    const operators = new Map<Stage, Measured>();
    const ignoresIdle = this.#periodMs >= IDLE_MS;
    const root = stageOf(recent, (at, stage) => operators.set(stage, at), { ignoresIdle });
    if (root === undefined) return; // too few elements: the next decision covers this period, too
    const waitedMs = totalWaitedMs - this.#lastWaitedMs;
    this.#last = figuresOf(total);
    this.#lastWaitedMs = totalWaitedMs;
    const consumed = 1_000 / this.#pace.pauseMs;
    if (!(outputLatencyMs(root, Infinity) > 0)) return; // nothing took any time
    climb(root, this.#knobs, consumed, this.#options.budgets);
    for (const knob of this.#knobs) knob.remember();
    const measured = measuredMs(recent, waitedMs);
    outputLatencyMs(root, consumed, (stage, expectedMs) => {
      const operator = operators.get(stage)!;
      if (operator.knob === undefined) return;
      this.#beliefs.set(operator.knob, { expectedMs, measuredMs: measured.get(operator) ?? 0 });
    });
  }

  /** The value of a knob, and what the model expected of it. */
  describe(knob: Knob): TuningStats {
    const { parameter, value } = knob;
    return { parameter, value, ...this.#beliefs.get(knob) };
  }
}

/** How long each operator's consumer waited for it, in ms an element. */
function measuredMs(
  operator: Measured,
  waitedMs: number,
  into = new Map<Measured, number>(),
): Map<Measured, number> {
  const { figures, inputs, isPassed } = operator;
  into.set(operator, figures.elements === 0 ? 0 : waitedMs / figures.elements);
  const below = isPassed ? waitedMs : figures.waitMs;
  for (const input of inputs) measuredMs(input, below / inputs.length, into);
  return into;
}

/** The operators, with figures of only what they have done since the figures in `last`. */
function since(last: ReadonlyMap<number, OperatorFigures>, operator: Measured): Measured {
  const { figures } = operator;
  const before = last.get(figures.number);
  return {
    ...operator,
    figures: before === undefined ? figures : {
      number: figures.number,
      elements: figures.elements - before.elements,
      selfMs: figures.selfMs - before.selfMs,
      waitMs: figures.waitMs - before.waitMs,
      callMs: figures.callMs - before.callMs,
      bytesOut: figures.bytesOut - before.bytesOut,
    },
    inputs: operator.inputs.map((input) => since(last, input)),
  };
}

function figuresOf(
  { figures, inputs }: Measured,
  into = new Map<number, OperatorFigures>(),
): Map<number, OperatorFigures> {
  into.set(figures.number, figures);
  for (const input of inputs) figuresOf(input, into);
  return into;
}

/** The weight of the newest pause, if it is shorter than the estimate. */
const SHORTER = 0.3;
/** The weight of the newest pause, if it is not shorter than the estimate. */
const LONGER = 0.03;
/** A pause counts as at most this many times the estimate, plus 1 ms. */
const OUTLIER = 4;

/**
 * How long a consumer works between two elements. Short pauses count more than long ones. If the
 * estimate is too long, the consumer has to wait; if it is too short, this costs only calls and
 * buffers within the budgets. So a long pause, such as an evaluation, changes the estimate little.
 */
export class ConsumerPace {
  #pauseMs: number | undefined;
  #totalMs = 0;

  /** The estimate; 0 before the first pause. */
  get pauseMs(): number {
    return this.#pauseMs ?? 0;
  }

  /** Notes the total of all pauses, after `count` more of them. */
  note(totalMs: number, count: number): void {
    const newestMs = Math.max(0, totalMs - this.#totalMs) / count;
    this.#totalMs = totalMs;
    const before = this.#pauseMs ?? newestMs;
    const weight = newestMs < before ? SHORTER : LONGER;
    this.#pauseMs = before + weight * (Math.min(newestMs, OUTLIER * before + 1) - before);
  }
}
