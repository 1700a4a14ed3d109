/** Begins saves in their folders, at the request of the dispatcher, which touches no file itself. */
import { AbortRace } from "../../../core/abort_race.ts";
import { LeatError } from "../../../core/error.ts";
import type { RequestOf } from "../../runtime/protocol.ts";
import type { Timer, World } from "../../runtime/world.ts";
import { listerError, type SaveStart, type WorkerProtocol } from "../protocol.ts";
import { LISTING_LIMITS } from "../runner/listings.ts";
import { NO_SPLITS, type RunnerFactory } from "../runner/runner.ts";
import { Slots } from "../runner/turns.ts";
import { startOf } from "./save_answers.ts";

type Request = RequestOf<WorkerProtocol, "beginSave">;

/** The beginning of a save that waits or runs. */
interface Beginning {
  readonly start: Promise<SaveStart>;
  /** The latest deadline of its requests, on the world's monotonic clock. */
  readonly latest: { deadlineMs: number };
}

/**
 * Begins saves, a few at a time, because each lists the splits of its pipeline. A repeated request of
 * the dispatcher waits for the first one, so that the splits are not listed twice. A beginning ends at
 * the deadline of its last request, so that one that hangs does not occupy its slot for ever.
 */
export class SaveBeginnings {
  readonly #world: World;
  readonly #runners: RunnerFactory;
  readonly #slots = new Slots(LISTING_LIMITS);
  /** By the name of the save. */
  readonly #underWay = new Map<string, Beginning>();

  constructor(world: World, runners: RunnerFactory) {
    this.#world = world;
    this.#runners = runners;
  }

  /** `deadlineMs` is monotonic. @throws {LeatError} See {@linkcode WorkerProtocol.beginSave}. */
  begin(request: Request, deadlineMs: number): Promise<SaveStart> {
    const { owner, saveName } = request;
    const known = this.#underWay.get(saveName);
    if (known !== undefined) {
      known.latest.deadlineMs = Math.max(known.latest.deadlineMs, deadlineMs);
      return known.start;
    }
    const latest = { deadlineMs };
    const start = this.#slots.run(owner, () => this.#begin(request, latest))
      .finally(() => this.#underWay.delete(saveName));
    this.#underWay.set(saveName, { start, latest });
    return start;
  }

  async #begin(request: Request, latest: Beginning["latest"]): Promise<SaveStart> {
    // The runner may not react to being disposed, for example if its disk does not answer.
    const abort = new AbortRace();
    let timer: Timer | undefined;
    const giveUpIfLate = () => {
      const leftMs = latest.deadlineMs - this.#world.nowMs();
      if (leftMs <= 0) abort.abort(lateError(request));
      else if (Number.isFinite(leftMs)) timer = this.#world.timer(leftMs, giveUpIfLate);
    };
    giveUpIfLate();
    if (abort.isAborted) throw lateError(request);
    try {
      return await beginSave(this.#runners, request, abort);
    } finally {
      timer?.cancel();
    }
  }
}

function lateError({ save: { folder } }: Request): LeatError {
  return new LeatError("deadline_exceeded", `The save to ${folder} was not begun in time`);
}

async function beginSave(
  runners: RunnerFactory,
  { dataset, save, seed, owner, saveName }: Request,
  abort: AbortRace,
): Promise<SaveStart> {
  const settings = { graph: dataset.graph, seed, epoch: 0, splits: false, shared: false, save };
  const runner = runners.start(settings, NO_SPLITS, { owner });
  try {
    const step = runner.next({ work: "begin", owner: saveName });
    const outcome = await abort.race(step).catch((error) => {
      throw listerError(error);
    });
    if (outcome.kind === "error") throw LeatError.fromWire(outcome.error);
    if (outcome.kind === "element") return startOf(outcome.frame);
    throw new LeatError("unavailable", "The runner was stopped");
  } finally {
    runner.dispose();
  }
}
