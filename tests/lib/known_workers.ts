/** Tracks the program's threads, so that a test can make one die. */

/** A tracked thread. */
export class KnownWorker extends globalThis.Worker {
  static readonly all: KnownWorker[] = [];
  readonly name: string | undefined;
  terminations = 0;

  constructor(...options: ConstructorParameters<typeof Worker>) {
    super(...options);
    this.name = options[1]?.name;
    KnownWorker.all.push(this);
  }

  override terminate(): void {
    this.terminations++;
    super.terminate();
  }

  /** Acts like a thread that dies: its owner gets an error, and no answer any more. */
  die(): void {
    super.terminate();
    this.dispatchEvent(new ErrorEvent("error", { message: "died for the test" }));
  }
}

/** Tracks all threads that start before the result is disposed. */
export function knowWorkers(): Disposable {
  const { Worker } = globalThis;
  globalThis.Worker = KnownWorker;
  KnownWorker.all.length = 0;
  return {
    [Symbol.dispose]: () => {
      globalThis.Worker = Worker;
    },
  };
}
