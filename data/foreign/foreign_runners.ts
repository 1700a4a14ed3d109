/**
 * The interface to the place where foreign operators run: on Deno, a process without any permission.
 *
 * Operators below them that this program built, such as one that reads from a service, stay in this
 * process. The runner pulls their elements.
 */
import type { LeatError } from "../../core/error.ts";
import type { PhiloxBlock } from "../../core/philox.ts";
import type { Outcome } from "../elements/answer.ts";
import type { ElementIterator } from "../iterator.ts";

/**
 * A part of a graph for another process: a foreign operator and the foreign ones below it. Plain
 * data.
 */
export interface ForeignPart {
  /** A serialised graph in which `PartInputNode`s stand for operators that stay in this process. */
  readonly graph: Uint8Array;
  /** The random state of the `IteratorContext`, so that both processes draw the same. */
  readonly randomState: PartRandomState;
  /** Whether operators keep the order of elements unless they say otherwise. */
  readonly deterministic: boolean;
  /** As in `RootOptions`. */
  readonly needsOrder: boolean;
  /** The number of its last operator in the whole graph; `randomStateNumber` does not count settings. */
  readonly number: number;
  readonly randomStateNumber: number;
  /** Opaque state that the nodes share, as an earlier iteration reported it. */
  readonly shared?: Uint8Array;
}

/** `RandomState` as plain data. */
export interface PartRandomState {
  readonly root: PhiloxBlock;
  readonly seeded: boolean;
  /** In decimal digits. */
  readonly salt: string;
  readonly epoch: number;
  readonly split: number;
}

/** What a call of `RemoteElements.next()` returns. */
export type RemoteStep =
  & (
    /** All that are available, at least one, in order. */
    | { readonly kind: "answers"; readonly answers: readonly Outcome[] }
    /** `isShare`: other consumers got elements of the stream, too. */
    | { readonly kind: "end"; readonly isShare?: boolean }
    /** Reading cannot continue. */
    | { readonly kind: "failure"; readonly error: LeatError }
  )
  /** State that the nodes of a part share, if it has changed. */
  & { readonly shared?: Uint8Array };

/** An iterator in another process. Calls are made one at a time, as for an `ElementIterator`. */
export interface RemoteElements {
  /** @throws {LeatError} if the other process has ended. An element's error is an answer. */
  next(): Promise<RemoteStep>;
  again(token: unknown): Promise<unknown>;
  /** Its state. The bytes are untrusted: only `restore` may read them. */
  save(): Promise<Uint8Array>;
  restore(state: Uint8Array): Promise<void>;
  /** Ends it and its inputs. Idempotent. */
  close(): void;
}

/** An iterator in this process whose elements another process pulls. */
export interface ServedElements {
  readonly elements: ElementIterator;
  save(): Promise<Uint8Array>;
  restore(state: Uint8Array): Promise<void>;
  /** What is sent with a step in addition to its element. */
  news(isEnd: boolean): { readonly isShare?: boolean; readonly shared?: Uint8Array };
}

/** Opens the input with this number, counted in pre-order, for this epoch. */
export type OpenInput<T> = (input: number, epoch: number) => T;

/** Where the parts of one iteration run. */
export interface ForeignRunner {
  /**
   * Begins to run a part.
   *
   * @throws {LeatError} `permission_denied` or `unimplemented`, naming what is missing, if no
   * process can be started; any other error that prevents the start.
   */
  open(part: ForeignPart, openInput: OpenInput<ServedElements>): Promise<RemoteElements>;
  /** Ends all parts; resolves when they have ended. Idempotent. */
  close(): Promise<void>;
}

export interface ForeignRunners {
  /** Why no runner can be started here, with the remedy; `undefined` if no reason is known. */
  readonly obstacle: string | undefined;
  /** A runner for one iteration. Its process starts when the first part is opened. */
  start(): ForeignRunner;
}
