/**
 * The cores of a modelled host: work takes virtual time on them, first come first served.
 *
 * @module
 */

/** What the cores of several lives of a host, or of several hosts, have done together. */
export interface CoresMeter {
  /** Core time used, in ms. */
  busyMs: number;
}

/** See the module. */
export class ModelledCores {
  readonly #count: number;
  readonly #sleep: (ms: number) => Promise<void>;
  readonly #meter: CoresMeter;
  readonly #waiting: { readonly cores: number; readonly begin: () => void }[] = [];
  #free: number;

  /** @param sleep Lets virtual time pass on the host. */
  constructor(count: number, sleep: (ms: number) => Promise<void>, meter: CoresMeter) {
    this.#count = count;
    this.#free = count;
    this.#sleep = sleep;
    this.#meter = meter;
  }

  /**
   * Does work of so much core time.
   *
   * @param coresMax On how many cores at once; all that there are if that is less.
   */
  async work(coreMs: number, coresMax: number): Promise<void> {
    const cores = Math.min(coresMax, this.#count);
    await this.#take(cores);
    await this.#sleep(coreMs / cores);
    this.#meter.busyMs += coreMs;
    this.#free += cores;
    this.#settle();
  }

  #take(cores: number): Promise<void> | void {
    if (this.#waiting.length === 0 && cores <= this.#free) {
      this.#free -= cores;
      return;
    }
    return new Promise((begin) => {
      this.#waiting.push({ cores, begin });
      this.#settle();
    });
  }

  /** Work that wants many cores is not overtaken by such that wants few, or it might wait for ever. */
  #settle(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      if (first.cores > this.#free) return;
      this.#free -= first.cores;
      this.#waiting.shift();
      first.begin();
    }
  }
}
