/**
 * The program's threads as a test sees them, which can have one die.
 *
 * @module
 */

/** A thread of which the test knows. */
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

  /** What a thread's owner sees when it dies by itself: an error, and no answer any more. */
  die(): void {
    super.terminate();
    this.dispatchEvent(new ErrorEvent("error", { message: "died for the test" }));
  }
}

/** Has all threads known that start before the answer is disposed. */
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
