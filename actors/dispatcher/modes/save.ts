/**
 * A save by all workers (`distributedSave`): they write runs of splits to files of a folder. Its clients
 * read nothing: they are told how far it is.
 *
 * @module
 */
import { LeatError } from "../../../core/error.ts";
import { ShardingPolicy } from "../../../data/sharding_policy.ts";
import type { Iteration, Job, SaveEnd, Task } from "../entities.ts";
import { isSaveOver } from "../saving.ts";
import { loseWork } from "../saving_state.ts";
import { checkOrder, eachElementOnce } from "./deterministic.ts";
import {
  type Admission,
  type Beginning,
  invalid,
  type JoinFacts,
  Mode,
  type OpenRequest,
} from "./mode.ts";

/** See the module. */
export class SaveMode extends Mode {
  override check({ jobName, parameters }: OpenRequest, { cardinality }: JoinFacts): void {
    const { processingMode, numConsumers, sharing } = parameters;
    if (processingMode !== ShardingPolicy.DETERMINISTIC) {
      throw invalid(`A save goes with processingMode DETERMINISTIC, not ${processingMode}`);
    }
    if (jobName === undefined) {
      throw invalid("A save needs a jobName: all that save there give the same");
    }
    if (cardinality === -1) {
      throw invalid("distributedSave: an endless dataset cannot be saved; take(n) of it");
    }
    if (sharing || numConsumers !== undefined) throw eachElementOnce();
    checkOrder(parameters);
  }

  override disagreement({ parameters }: Job, has: string, asked: string): LeatError {
    return new LeatError(
      "failed_precondition",
      `${parameters.save?.folder} is being saved to with another dataset or other options: it is ` +
        `${has}; asked for was ${asked}. Wait until that is done, or save to another folder`,
    );
  }

  /** One that is over is no matter of those who come next: they look at the folder again. */
  override isOver(iteration: Iteration): boolean {
    return isSaveOver(iteration);
  }

  override admit(): Admission {
    return { replaced: [], client: {} };
  }

  override beginning({ parameters }: OpenRequest): Beginning {
    return { seed: parameters.ordered!.seed };
  }

  override endOf(iteration: Iteration): SaveEnd | undefined {
    return isSaveOver(iteration) ? { error: iteration.error } : undefined;
  }

  override taskEnded({ saving }: Iteration, { taskId }: Task): void {
    if (saving !== null) loseWork(saving, taskId);
  }
}
