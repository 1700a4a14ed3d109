/** The cores of a modelled host. Work takes virtual time on them, in the order of its arrival. */

/** Total work of the cores of several lives of a host, or of several hosts. */
export interface CoresMeter {
  /** Core time used, in ms. */
  busyMs: number;
}

/** The cores of one host. */
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
   * Does work of that much core time.
   * @param coresMax Maximum number of cores to use in parallel.
   */
  async work(coreMs: number, coresMax: number): Promise<void> {
    const cores = Math.min(coresMax, this.#count);
    await this.#take(cores);
    await this.#sleep(coreMs / cores);
    this.#meter.busyMs += coreMs;
    this.#free += cores;
    this.#startWaiting();
  }

  #take(cores: number): Promise<void> | void {
    if (this.#waiting.length === 0 && cores <= this.#free) {
      this.#free -= cores;
      return;
    }
    return new Promise((begin) => {
      this.#waiting.push({ cores, begin });
      this.#startWaiting();
    });
  }

  /**
   * Starts waiting work in order. Work that needs few cores does not overtake work that needs many,
   * because that could starve.
   */
  #startWaiting(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      if (first.cores > this.#free) return;
      this.#free -= first.cores;
      this.#waiting.shift();
      first.begin();
    }
  }
}
