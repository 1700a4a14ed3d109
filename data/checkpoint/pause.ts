/**
 * The pause of background reading while an iteration is saved. It lasts until the state of the whole
 * graph is written, because user functions may change elements in place.
 */

/** Shared by all iterators of one iteration. */
export class Pause {
  readonly #resumptions: (() => void)[] = [];

  /** Calls `resume` once the iteration is saved. */
  whenOver(resume: () => void): void {
    this.#resumptions.push(resume);
  }

  /**
   * Call when the iteration is saved, or could not be. Inputs, which are saved after their readers,
   * resume before them, because a reader may request an element at once.
   */
  end(): void {
    for (const resume of this.#resumptions.splice(0).reverse()) resume();
  }
}
