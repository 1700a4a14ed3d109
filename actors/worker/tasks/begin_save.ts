/** Begins saves in their folders, at the request of the dispatcher, which touches no file itself. */
import { LeatError } from "../../../core/error.ts";
import type { RequestOf } from "../../runtime/protocol.ts";
import { listerError, type SaveStart, type WorkerProtocol } from "../protocol.ts";
import { NO_SPLITS, type RunnerFactory } from "../runner/runner.ts";
import { startOf } from "./save_answers.ts";

/**
 * Begins saves. A repeated request of the dispatcher waits for the first one, which holds the lock of
 * the folder.
 */
export class SaveBeginnings {
  readonly #runners: RunnerFactory;
  readonly #underWay = new Map<string, Promise<SaveStart>>();

  constructor(runners: RunnerFactory) {
    this.#runners = runners;
  }

  begin(request: RequestOf<WorkerProtocol, "beginSave">): Promise<SaveStart> {
    const { owner } = request;
    return this.#underWay.getOrInsertComputed(
      owner,
      () => beginSave(this.#runners, request).finally(() => this.#underWay.delete(owner)),
    );
  }
}

async function beginSave(
  runners: RunnerFactory,
  { dataset, save, seed, owner }: RequestOf<WorkerProtocol, "beginSave">,
): Promise<SaveStart> {
  const settings = { graph: dataset.graph, seed, epoch: 0, splits: false, shared: false, save };
  const runner = runners.start(settings, NO_SPLITS);
  try {
    const outcome = await runner.next({ work: "begin", owner }).catch((error) => {
      throw listerError(error);
    });
    if (outcome.kind === "error") throw LeatError.fromWire(outcome.error);
    if (outcome.kind === "element") return startOf(outcome.frame);
    throw new LeatError("unavailable", "The runner was stopped");
  } finally {
    runner.dispose();
  }
}
