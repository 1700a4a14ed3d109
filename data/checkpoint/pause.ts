/**
 * The pause that reading ahead makes while an iteration is saved. It lasts until the state of the
 * whole graph is written down: an element that went on before might by then have been changed in
 * place by a function.
 */

/** Shared by all iterators of one iteration. */
export class Pause {
  readonly #resumptions: (() => void)[] = [];

  /** Has `resume` called once the iteration is saved. */
  whenOver(resume: () => void): void {
    this.#resumptions.push(resume);
  }

  /**
   * The iteration is saved, or could not be. Inputs, which are saved after what reads them, go on
   * before it: it may ask them for an element at once.
   */
  end(): void {
    for (const resume of this.#resumptions.splice(0).reverse()) resume();
  }
}
