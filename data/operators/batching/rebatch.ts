/** `rebatch`: regroups the rows of batches into batches of other sizes. */
import { copyTree, flattenTree, treePaths } from "../../../core/tree.ts";
import { checkArray, checkBoolean, checkInteger, invalidArgument, optionsOf } from "../../check.ts";
import { commonRows } from "../../elements/components.ts";
import type { IteratorContext } from "../../context.ts";
import { END } from "../../iterator.ts";
import {
  type Attributes,
  type DatasetNode,
  registerNode,
  UNKNOWN_CARDINALITY,
} from "../../node.ts";
import { asBatch, assertJoinable, cutRows, joinRows } from "../../elements/rows.ts";
import { type ElementSpec, leavesOfSpec, mapSpec, TensorSpec } from "../../elements/spec.ts";
import { checkHasRows } from "../../elements/spec_check.ts";
import { BufferMeter } from "../../iterators/stats.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import { ElementwiseIterator } from "../elementwise.ts";
import { UnaryNode } from "../unary.ts";
import { wholeState } from "../../checkpoint/whole_state.ts";

const KIND = "rebatch";

/** Options of `rebatch`. */
export interface RebatchOptions {
  /** Drops a last batch that is not full; default false. */
  readonly dropRemainder?: boolean | undefined;
}

export class RebatchNode extends UnaryNode {
  static readonly options = optionsOf<RebatchOptions>("rebatch", { dropRemainder: true });
  override readonly division = "whole";
  /** The sizes of batches, used cyclically. */
  readonly sizes: readonly number[];
  readonly dropRemainder: boolean;

  constructor(input: DatasetNode, size: unknown, { dropRemainder }: RebatchOptions = {}) {
    super(KIND, input);
    checkHasRows(KIND, input.elementSpec);
    this.sizes = typeof size === "number"
      ? [checkInteger(KIND, "size", size, 1)]
      : checkArray(KIND, "size", size).map((at) => checkInteger(KIND, "size", at, 0));
    if (!this.sizes.some((at) => at > 0)) {
      throw invalidArgument(KIND, "size", "above 0, or a list with a size above 0", size);
    }
    this.dropRemainder = checkBoolean(KIND, "dropRemainder", dropRemainder, false);
  }

  override get attributes(): Attributes {
    return { sizes: this.sizes, dropRemainder: this.dropRemainder };
  }

  override get elementSpec(): ElementSpec {
    const { elementSpec } = this.input;
    const rows = this.#rows(elementSpec);
    return mapSpec(
      elementSpec,
      (leaf) => new TensorSpec(leaf.dtype, [rows, ...leaf.shape.slice(1)]),
    );
  }

  override get cardinality(): number {
    const count = this.input.cardinality;
    return count === 0 || count === Infinity ? count : UNKNOWN_CARDINALITY;
  }

  override makeIterator(context: IteratorContext): RebatchIterator {
    return new RebatchIterator(context, this);
  }

  /** The number of rows of every batch; `null` if it varies or is unknown. */
  #rows(elementSpec: ElementSpec): number | null {
    const size = this.sizes[0]!;
    if (this.sizes.some((at) => at !== size)) return null;
    if (this.dropRemainder) return size;
    const rows = leavesOfSpec(elementSpec)?.[0]?.shape[0] ?? null;
    return rows !== null && rows % size === 0 ? size : null;
  }
}

registerNode(KIND, { fromWire: (a, [input]) => new RebatchNode(input!, a.sizes, a) });

/** The `rows` rows of a batch that are not given yet; they begin at `from`. */
interface HeldBatch {
  readonly batch: unknown;
  readonly from: number;
  readonly rows: number;
}

/** Such rows to give next, up to the end of the batch or, if that is held on, fewer. */
interface Piece extends HeldBatch {
  readonly isHeldOn: boolean;
}

interface RebatchState {
  readonly held: readonly Omit<HeldBatch, "from">[];
  readonly empty: unknown;
  readonly turn: number;
  readonly inputEnded: boolean;
}

class RebatchIterator extends ElementwiseIterator {
  readonly #sizes: readonly number[];
  readonly #dropRemainder: boolean;
  readonly #meter: BufferMeter;
  #held: HeldBatch[] = [];
  #rows = 0;
  /** A batch of size 0 like the last element, in memory of its own; undefined before the first. */
  #empty: unknown;
  /** The index of the next size. */
  #turn = 0;
  #inputEnded = false;

  constructor(context: IteratorContext, { sizes, dropRemainder }: RebatchNode) {
    super(context);
    this.#sizes = sizes;
    this.#dropRemainder = dropRemainder;
    this.#meter = new BufferMeter(context.stats);
  }

  override step(): unknown {
    const size = this.#sizes[this.#turn]!;
    if (size === 0 && this.#empty !== undefined) return this.#give(0);
    if (size > 0 && this.#rows >= size) return this.#give(size);
    if (!this.#inputEnded) return super.step();
    return this.#rows === 0 || this.#dropRemainder ? END : this.#give(this.#rows);
  }

  protected override accept(element: unknown): unknown {
    if (element === END) {
      this.#inputEnded = true;
      return AGAIN;
    }
    const rows = commonRows(KIND, flattenTree(element), treePaths(element));
    const batch = asBatch(element);
    if (this.#held.length > 0) assertJoinable(KIND, this.#held[0]!.batch, batch);
    this.#empty = copyTree(cutRows(batch, 0, 0));
    if (rows > 0) {
      this.#held.push({ batch, from: 0, rows });
      this.#rows += rows;
      this.#meter.enters(batch);
      this.#meter.holds(this.#held.length);
    }
    return AGAIN;
  }

  #give(size: number): unknown {
    // A short last batch does not advance to the next size, so that no empty batch follows.
    if (size === this.#sizes[this.#turn]) this.#turn = (this.#turn + 1) % this.#sizes.length;
    if (size === 0) return this.stats.gave(copyTree(this.#empty));
    const pieces = this.#take(size);
    this.#meter.holds(this.#held.length);
    const isOne = pieces.length === 1;
    const parts = pieces.map((piece) => this.#part(piece, isOne));
    return this.stats.gave(isOne ? parts[0] : joinRows(parts));
  }

  /**
   * The rows of a piece, to give alone or to join with others. The consumer may transfer the memory of
   * what it gets, and so must not get that of rows to come.
   */
  #part(piece: Piece, isAlone: boolean): unknown {
    const { batch, from, rows, isHeldOn } = piece;
    if (!isHeldOn) return restOf(piece);
    const part = cutRows(batch, from, from + rows);
    return isAlone ? this.context.given(part) : this.context.givenBytes(part);
  }

  /** Takes `size` rows from those held. A piece that then fails to be cut is not tried again. */
  #take(size: number): Piece[] {
    const pieces: Piece[] = [];
    let taken = 0;
    for (let wanted = size; wanted > 0;) {
      const { batch, from, rows } = this.#held[taken]!;
      const count = Math.min(wanted, rows);
      const isHeldOn = count < rows;
      pieces.push({ batch, from, rows: count, isHeldOn });
      if (isHeldOn) this.#held[taken] = { batch, from: from + count, rows: rows - count };
      else taken++;
      wanted -= count;
    }
    this.#held.splice(0, taken); // at once, because `shift()` of a long array moves all items after it
    this.#rows -= size;
    return pieces;
  }

  protected override ownState(): RebatchState {
    return {
      held: this.#held.map((rest) => ({ batch: restOf(rest), rows: rest.rows })),
      empty: this.#empty,
      turn: this.#turn,
      inputEnded: this.#inputEnded,
    };
  }

  protected override restoreOwn(state: unknown): void {
    const { held, empty, turn, inputEnded } = state as RebatchState;
    this.#held = held.map(wholeState).map(({ batch, rows }) => ({ batch, from: 0, rows }));
    this.#rows = held.reduce((sum, { rows }) => sum + rows, 0);
    this.#empty = empty;
    this.#turn = turn;
    this.#inputEnded = inputEnded;
    for (const { batch } of held) this.#meter.enters(batch);
    this.#meter.holds(held.length);
  }

  protected override release(): void {
    super.release();
    this.#held = [];
    this.#rows = 0;
    this.#empty = undefined;
    this.#inputEnded = true;
    this.#meter.holds(0);
  }
}

function restOf({ batch, from, rows }: HeldBatch): unknown {
  return from === 0 ? batch : cutRows(batch, from, from + rows);
}
