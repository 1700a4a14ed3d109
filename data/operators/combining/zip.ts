/** `zip`: elements of several datasets side by side. */
import { LeatError } from "../../../core/error.ts";
import { invalidArgument } from "../../check.ts";
import {
  type Outcome,
  restoreOutcome,
  type SavedOutcome,
  saveOutcome,
} from "../../elements/answer.ts";
import type { IteratorContext } from "../../context.ts";
import type { Host } from "../../host.ts";
import { ElementIterator, END, type Pulled, type Token } from "../../iterator.ts";
import {
  type Attributes,
  type Changeable,
  DatasetNode,
  registerNode,
  UNKNOWN_CARDINALITY,
} from "../../node.ts";
import { alignedSource, AlignedSplits } from "../../sharding/aligned_splits.ts";
import { isOfStream } from "../../iterators/reading_failure.ts";
import type { ElementSpec } from "../../elements/spec.ts";
import { cutRuns, type Split, type Splittable } from "../../sharding/splits.ts";

/**
 * If element n of each input comes from element n of an indexed or endless source, tasks divide these
 * sources together, by index. Otherwise only one input may be divided: the others are endless.
 */
export class ZipNode extends DatasetNode implements Splittable {
  override readonly division = "whole";
  readonly pairsInputs = true;
  /** A task may pair its elements with any random numbers, but not with any other elements. */
  override readonly needsWholeInput: boolean;
  /** The names of the components; `null` for a tuple. */
  readonly keys: readonly string[] | null;
  /**
   * The length of the shortest source, if the sources are divided together. Found once: if each `zip`
   * asked the one below it again, the time would double with every `zip` in a chain.
   */
  readonly #sharedLength: number | undefined;

  constructor(inputs: readonly DatasetNode[], keys: readonly string[] | null) {
    super("zip", inputs);
    if (inputs.length === 0) {
      throw new LeatError("invalid_argument", "zip: datasets must hold at least one dataset");
    }
    const isNamed = Array.isArray(keys) && keys.length === inputs.length &&
      keys.every((key) => typeof key === "string");
    if (keys !== null && !isNamed) {
      throw invalidArgument("zip", "keys", `${inputs.length} names, or null`, keys);
    }
    this.keys = keys;
    this.needsWholeInput = inputs.filter((input) => !isRandom(input)).length > 1;
    this.#sharedLength = sharedLength(inputs);
  }

  override changeableInput(own: Changeable): Changeable {
    return own;
  }

  override get attributes(): Attributes {
    return { keys: this.keys };
  }

  override get elementSpec(): ElementSpec {
    return assemble(this.keys, this.inputs.map((input) => input.elementSpec)) as ElementSpec;
  }

  override get cardinality(): number {
    const all = this.inputs.map((input) => input.cardinality);
    if (all.includes(0)) return 0;
    return all.includes(UNKNOWN_CARDINALITY) ? UNKNOWN_CARDINALITY : Math.min(...all);
  }

  override tokenAt(index: number): Token | undefined {
    const tokens = this.inputs.map((input) => input.tokenAt(index));
    return tokens.includes(undefined) ? undefined : tokens;
  }

  get isDivided(): boolean {
    return this.#sharedLength !== undefined;
  }

  get isAligned(): boolean {
    return this.isDivided;
  }

  /** Elements beyond the shortest input are not read. */
  listSplits(_host: Host, multiple: number): Promise<Split[]> {
    return Promise.resolve(cutRuns(this.#sharedLength!, multiple));
  }

  override makeIterator(context: IteratorContext): ZipIterator {
    const splits = this.isDivided ? context.openSplits() : undefined;
    const count = this.inputs.length;
    const below = splits === undefined
      ? context
      : context.withSplits(new AlignedSplits(splits, count));
    return new ZipIterator(context, below, count, this.keys);
  }
}

registerNode("zip", {
  fromWire: (a, inputs) => new ZipNode(inputs, a.keys as readonly string[] | null),
});

function sharedLength(inputs: readonly DatasetNode[]): number | undefined {
  const lengths = inputs.map((input) => alignedSource(input)?.cardinality);
  const shortest = lengths.includes(undefined) ? Infinity : Math.min(...lengths as number[]);
  return shortest === Infinity ? undefined : shortest;
}

function assemble(keys: readonly string[] | null, parts: unknown[]): unknown {
  return keys === null ? parts : Object.fromEntries(keys.map((key, i) => [key, parts[i]]));
}

interface ZipState {
  readonly inputs: unknown[];
  readonly ended: boolean;
  /** Components that were read when reading another input failed; `null` for that input. */
  readonly held?: readonly (SavedOutcome | null)[];
}

/** A component that was read, with its token, if it has one. */
interface Held extends Outcome {
  readonly token: Token | undefined;
}

const NONE: readonly never[] = [];

interface Failure {
  readonly error: unknown;
}

class ZipIterator extends ElementIterator {
  readonly #context: IteratorContext;
  readonly #inputs: readonly ElementIterator[];
  readonly #keys: readonly string[] | null;
  /** Components that were read when reading another input failed: `next()` uses them first. */
  #held: readonly (Held | undefined)[] = NONE;
  /** Components of the last element that had been held: their inputs may no longer know the tokens. */
  #wereHeld: readonly (Held | undefined)[] = NONE;
  #ended = false;

  /** `below`: the context in which inputs are made. */
  constructor(
    context: IteratorContext,
    below: IteratorContext,
    count: number,
    keys: readonly string[] | null,
  ) {
    super();
    this.#context = context;
    this.#inputs = Array.from({ length: count }, (_, i) => below.makeInput(i));
    this.#keys = keys;
  }

  /**
   * Reads all inputs even if an element of one failed, so that they stay aligned, or if one has ended:
   * a cache is complete only once its end was read.
   */
  override next(): Pulled<unknown> {
    if (this.#ended) return END;
    const parts: unknown[] = [];
    let waits = false;
    let isEnd = false;
    let failures: Failure[] | undefined;
    for (let i = 0; i < this.#inputs.length; i++) {
      try {
        const part = this.#pull(i);
        isEnd ||= part === END;
        waits ||= part instanceof Promise;
        parts[i] = part;
      } catch (error) {
        (failures ??= [])[i] = { error };
        parts[i] = undefined;
      }
    }
    if (waits) return this.#context.waitFor(this.#later(parts, failures ?? []));
    if (isEnd) return this.#end();
    if (failures !== undefined) throw this.#refuse(parts, failures);
    return this.#give(parts);
  }

  #pull(index: number): Pulled<unknown> {
    const held = this.#held[index];
    if (held === undefined) return this.#inputs[index]!.next();
    if (held.failed) throw held.value;
    return held.value;
  }

  async #later(parts: unknown[], failures: Failure[]): Promise<unknown> {
    const { host } = this.#context;
    const startedAtMs = host.nowMs();
    for (const [i, part] of parts.entries()) {
      const arrives = () => this.#context.awaited(i, host.nowMs() - startedAtMs);
      if (part instanceof Promise) part.then(arrives, arrives);
    }
    const arrived: unknown[] = [];
    let isEnd = false;
    for (let i = 0; i < parts.length; i++) {
      try {
        const element = await parts[i];
        isEnd ||= element === END;
        arrived.push(element);
      } catch (error) {
        failures[i] = { error };
        arrived.push(undefined);
      }
    }
    if (isEnd) return this.#end();
    if (failures.length > 0) throw this.#refuse(arrived, failures);
    return this.disposed ? END : this.#give(arrived);
  }

  /** The error to report. If it is a `ReadingFailure`, the other inputs' components are held. */
  #refuse(parts: readonly unknown[], failures: readonly Failure[]): unknown {
    const answers = parts.map((value, i): Held => {
      const failure = failures[i];
      if (failure !== undefined) return { failed: true, value: failure.error, token: undefined };
      return this.#held[i] ?? { failed: false, value, token: this.#inputs[i]!.token() };
    });
    const unread = answers.find((answer) => !isOfStream(answer));
    this.#held = unread === undefined
      ? NONE
      : answers.map((answer) => isOfStream(answer) ? answer : undefined);
    return unread === undefined ? firstOf(failures) : unread.value;
  }

  #give(parts: unknown[]): unknown {
    this.#wereHeld = this.#held;
    this.#held = NONE;
    return this.#context.stats.gave(assemble(this.#keys, parts));
  }

  /** The shortest input ends the stream; what the others gave or failed with is dropped. */
  #end(): typeof END {
    this.#ended = true;
    for (const input of this.#inputs) input.dispose();
    return END;
  }

  override token(): Token | undefined {
    const tokens: Token[] = [];
    for (const [i, input] of this.#inputs.entries()) {
      const held = this.#wereHeld[i];
      const token = held === undefined ? input.token() : held.token;
      if (token === undefined) return undefined;
      tokens.push(token);
    }
    return tokens;
  }

  override async again(token: Token): Promise<unknown> {
    const parts: unknown[] = [];
    for (const [i, input] of this.#inputs.entries()) {
      parts.push(await input.again((token as Token[])[i]));
    }
    return assemble(this.#keys, parts);
  }

  protected override async saveState(): Promise<ZipState> {
    const inputs: unknown[] = [];
    for (const input of this.#inputs) inputs.push(await input.save());
    if (this.#held.length === 0) return { inputs, ended: this.#ended };
    const held = this.#held.map((part) =>
      part === undefined ? null : saveOutcome(part, part.token)
    );
    return { inputs, ended: this.#ended, held };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    const saved = state as ZipState;
    const { inputs, ended } = saved;
    const held = "held" in saved ? saved.held! : [];
    for (const [i, input] of this.#inputs.entries()) await input.restore(inputs[i]);
    this.#ended = ended;
    const parts = held.map(async (saved, i) => {
      if (saved === null) return undefined;
      const token = "token" in saved ? saved.token : undefined;
      return { ...await restoreOutcome(saved, this.#inputs[i]), token };
    });
    this.#held = await Promise.all(parts);
  }

  protected override release(): void {
    this.#ended = true;
    this.#held = NONE;
    this.#wereHeld = NONE;
    for (const input of this.#inputs) input.dispose();
  }
}

/** The error of the first input that failed, in the order of inputs. */
function firstOf(failures: readonly Failure[]): unknown {
  return failures.find((failure) => failure !== undefined)!.error;
}

/** Whether the elements are random numbers, or each is computed from one. */
function isRandom(node: DatasetNode): boolean {
  const { division } = node;
  const isComputed = division === "element" || division === "position";
  return isComputed ? isRandom(node.inputs[0]!) : node.kind === "random";
}
