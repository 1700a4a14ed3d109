/**
 * The seam to where operators run that this program did not build, apart from it: on Deno, a process
 * without any permission.
 *
 * The operators below them that this program did build, such as the reading of a service, stay in this
 * process. The runner pulls their elements.
 */
import type { LeatError } from "../../core/error.ts";
import type { PhiloxBlock } from "../../core/philox.ts";
import type { Answer } from "../elements/answer.ts";
import type { ElementIterator } from "../iterator.ts";

/** What runs elsewhere: an operator and all below it, at its place in one iteration. Plain data. */
export interface ForeignPart {
  /** A serialised graph in which `PartInputNode`s stand for what stays in this process. */
  readonly graph: Uint8Array;
  /** The coordinates of luck that `IteratorContext` has, by which both processes draw the same. */
  readonly luck: PartLuck;
  /** Whether operators keep the order of elements if they do not say so themselves. */
  readonly deterministic: boolean;
  /** The number of its last operator in the whole graph, and that among operators that are no settings. */
  readonly number: number;
  readonly luckNumber: number;
  /** What the part's nodes shared when an earlier iteration of the same nodes told it. Opaque. */
  readonly shared?: Uint8Array;
}

/** See `Luck`; plain data. */
export interface PartLuck {
  readonly root: PhiloxBlock;
  readonly seeded: boolean;
  /** In decimal digits. */
  readonly salt: string;
  readonly epoch: number;
  readonly split: number;
}

/** One step of elements that are made elsewhere. */
export type RemoteStep =
  & (
    /** At least one, in order: those that were to be had at once. */
    | { readonly kind: "answers"; readonly answers: readonly Answer[] }
    /** `isShare`: others were given elements of the stream, too. */
    | { readonly kind: "end"; readonly isShare?: boolean }
    /** Reading cannot go on. */
    | { readonly kind: "failure"; readonly error: LeatError }
  )
  /** What the nodes of a part share by now, where that is news. */
  & { readonly shared?: Uint8Array };

/** An iterator elsewhere. Calls are made one at a time, as those of an `ElementIterator` are. */
export interface RemoteElements {
  /** @throws {LeatError} where the other side is gone. What an element failed with is an answer. */
  next(): Promise<RemoteStep>;
  /** See `ElementIterator.again`. */
  again(token: unknown): Promise<unknown>;
  /** Where it stands. What is in the bytes is for `restore` alone: a stranger may have written them. */
  save(): Promise<Uint8Array>;
  restore(state: Uint8Array): Promise<void>;
  /** Ends it, and what it reads. Idempotent. */
  close(): void;
}

/** An iterator here whose elements are taken elsewhere. */
export interface ServedElements {
  readonly elements: ElementIterator;
  save(): Promise<Uint8Array>;
  restore(state: Uint8Array): Promise<void>;
  /** What goes with a step beside its element. */
  news(isEnd: boolean): { readonly isShare?: boolean; readonly shared?: Uint8Array };
}

/** Opens the input with this number, counted in pre-order, for a repetition with this epoch. */
export type OpenInput<T> = (input: number, epoch: number) => T;

/** Where the parts of one iteration run. */
export interface ForeignRunner {
  /**
   * Begins to run a part.
   *
   * @throws {LeatError} `permission_denied` or `unimplemented` where nothing can be started here, with
   * what is missing; what else keeps it from starting.
   */
  open(part: ForeignPart, openInput: OpenInput<ServedElements>): Promise<RemoteElements>;
  /** Ends whatever runs, and resolves when nothing does. Idempotent. */
  close(): Promise<void>;
}

/** Starts runners. */
export interface ForeignRunners {
  /** Why none can be started here, and what would change that; `undefined` as far as is known where one can. */
  readonly obstacle: string | undefined;
  /** A runner of its own for one iteration. It begins to load when the first part is opened. */
  start(): ForeignRunner;
}
