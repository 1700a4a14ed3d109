/**
 * An iterator whose elements are made in another process.
 */
import { LeatError } from "../core/error.ts";
import type { IteratorContext } from "./context.ts";
import type { RemoteElements, RemoteStep } from "./foreign_runners.ts";
import { ElementIterator, END, type Pulled, type Token } from "./iterator.ts";
import { ReadingFailure } from "./reading_failure.ts";

/** What is saved of it. */
interface State {
  /** What the other process says of where it stands. It is never read here. */
  readonly remote: Uint8Array;
}

/** Opens the other side at the first call. */
export class RemoteIterator extends ElementIterator {
  readonly #context: IteratorContext;
  readonly #open: () => Promise<RemoteElements>;
  readonly #onShared: (shared: Uint8Array) => void;
  #opening: Promise<RemoteElements> | undefined;
  #ended = false;
  #failure: ReadingFailure | undefined;

  /** @param onShared Told what the nodes that run elsewhere share, whenever that is news. */
  constructor(
    context: IteratorContext,
    open: () => Promise<RemoteElements>,
    onShared: (shared: Uint8Array) => void = () => {},
  ) {
    super();
    this.#context = context;
    this.#open = open;
    this.#onShared = onShared;
  }

  override next(): Pulled<unknown> {
    if (this.disposed || this.#ended) return END;
    if (this.#failure !== undefined) throw this.#failure;
    return this.#step();
  }

  override async again(token: Token): Promise<unknown> {
    return await (await this.#remote()).again(token);
  }

  protected override async saveState(): Promise<State> {
    return { remote: await (await this.#remote()).save() };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    if (!("remote" in (state as object))) {
      throw new LeatError(
        "failed_precondition",
        "restore: this iterator was saved where the author of the pipeline was trusted. Restore it with " +
          "trustPipeline: true, or begin anew",
      );
    }
    await (await this.#remote()).restore((state as State).remote);
  }

  protected override release(): void {
    this.#opening?.then((remote) => remote.close(), () => {});
  }

  async #step(): Promise<unknown> {
    let step: RemoteStep;
    try {
      step = await this.#context.waitFor(this.#remote().then((remote) => remote.next()));
    } catch (error) {
      if (this.disposed) return END;
      throw this.#failure = ReadingFailure.of(error);
    }
    if (this.disposed) return END;
    if (step.shared !== undefined) this.#onShared(step.shared);
    const { stats } = this.#context;
    if (step.kind === "element") return stats.gave(step.element);
    if (step.kind === "error") {
      if (step.error instanceof ReadingFailure) throw this.#failure = step.error;
      throw stats.failed(step.error);
    }
    if (step.isShare === true) this.#context.notesShare();
    this.#ended = true;
    return END;
  }

  #remote(): Promise<RemoteElements> {
    return this.#opening ??= this.#begin();
  }

  async #begin(): Promise<RemoteElements> {
    const remote = await this.#open();
    if (this.disposed) remote.close();
    return remote;
  }
}
