/**
 * What a request to join an iteration has to be, whatever there is already.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { ShardingPolicy } from "../../data/sharding_policy.ts";
import type { Identity } from "../runtime/identity.ts";
import type { RequestOf } from "../runtime/protocol.ts";
import { datasetFor } from "./datasets.ts";
import { modeFor } from "./modes/modes.ts";
import { checkName } from "./names.ts";
import type { DispatcherProtocol, JobParameters } from "./protocol.ts";
import { SPLITS_MAX } from "./split_table.ts";
import type { Turn } from "./turn.ts";

/** The cardinality of a dataset without end, as clients write it. */
const ENDLESS = -1;
/** A consumer's share of a round takes memory in every scheduler, so their number has a bound. */
const CONSUMERS_MAX = 65_536;

type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;

/** What the request means; what it looks like was checked before. */
export function checkRequest(
  { state, listedWorkers }: Turn,
  request: OpenRequest,
  sender: Identity,
): void {
  const { requestId, jobName, stream, restoration, runId, parameters, consumerIndex } = request;
  const { numConsumers, sharing } = parameters;
  const { cardinality } = datasetFor(state, parameters.datasetId, sender);
  if (jobName === "") {
    throw invalid("jobName must not be empty; leave it out for a job of one's own");
  }
  for (const [what, name] of Object.entries({ jobName, requestId, stream, restoration, runId })) {
    if (name !== undefined) checkName(what, name);
  }
  if (runId !== undefined) checkRun(request);
  modeFor(parameters).check(request, { listedWorkers });
  if ((numConsumers === undefined) !== (consumerIndex === undefined)) {
    throw invalid("consumerIndex and numConsumers must be given together, or neither of them");
  }
  const isOrdered = parameters.processingMode === ShardingPolicy.DETERMINISTIC;
  if (numConsumers !== undefined) checkConsumers(request, numConsumers);
  if (numConsumers !== undefined && !isOrdered) checkCoordination(request, cardinality);
  if (sharing) checkSharing(request, cardinality);
  checkTargets(parameters);
  if (parameters.processingMode === ShardingPolicy.DETERMINISTIC) {
    checkOrdered(request, cardinality);
  }
}

function checkRun({ jobName, parameters: { ordered, save } }: OpenRequest): void {
  if (jobName !== undefined && ordered !== undefined && save === undefined) return;
  throw invalid(
    `A runId says which readers of a "${ShardingPolicy.DETERMINISTIC}" job with a jobName were started ` +
      "together; leave it out elsewhere",
  );
}

function checkTargets({ targetWorkers, numConsumers }: JobParameters): void {
  if (targetWorkers === "local" && numConsumers !== undefined) {
    throw invalid(
      'Coordinated reads need workers that all consumers reach, but targetWorkers is "local"; leave ' +
        "one of the two out",
    );
  }
}

function checkOrdered(
  { jobName, parameters, startAt, behind = [] }: OpenRequest,
  cardinality: number,
): void {
  const { numConsumers, sharing, ordered, save } = parameters;
  if (save !== undefined) checkSave(jobName, cardinality);
  if (sharing || save !== undefined && numConsumers !== undefined) {
    throw new LeatError(
      "unimplemented",
      `A "${ShardingPolicy.DETERMINISTIC}" job gives each element once; sharing goes with ` +
        `"${ShardingPolicy.OFF}" and "${ShardingPolicy.DYNAMIC}"`,
    );
  }
  if (ordered === undefined || !/^[0-9a-f]{16}$/.test(ordered.seed)) {
    throw invalid(`A "${ShardingPolicy.DETERMINISTIC}" job needs a seed of 16 hexadecimal digits`);
  }
  if (startAt !== undefined && startAt > SPLITS_MAX) {
    throw invalid(
      `startAt must be a place among the splits, of which there are at most ${SPLITS_MAX}, got ` +
        `${startAt}`,
    );
  }
  const ascends = behind.every((at, i) => at < (behind[i + 1] ?? startAt ?? 0));
  if (!ascends) throw invalid(`behind must be places before startAt, ascending, got ${behind}`);
}

function checkSave(jobName: string | undefined, cardinality: number): void {
  if (jobName === undefined) {
    throw invalid("A save needs a jobName: all that save there give the same");
  }
  if (cardinality === -1) {
    throw invalid("distributedSave: an endless dataset cannot be saved; take(n) of it");
  }
}

function checkConsumers(
  { jobName, consumerIndex = -1 }: OpenRequest,
  numConsumers: number,
): void {
  if (jobName === undefined) {
    throw invalid("Coordinated reads need a jobName that all consumers give");
  }
  if (numConsumers < 1 || CONSUMERS_MAX < numConsumers) {
    throw invalid(
      `numConsumers must be an integer from 1 to ${CONSUMERS_MAX}, got ${numConsumers}`,
    );
  }
  if (consumerIndex < 0 || numConsumers <= consumerIndex) {
    throw invalid(
      `consumerIndex must be an integer from 0 to ${numConsumers - 1}, got ${consumerIndex}`,
    );
  }
}

function checkCoordination({ parameters }: OpenRequest, cardinality: number): void {
  if (parameters.sharing) {
    throw invalid("A job can share its data between trainers or coordinate reads, but not both");
  }
  if (cardinality >= 0) {
    throw invalid(
      `Coordinated reads need a dataset without end, and this one has ${cardinality} elements; add ` +
        `.repeat() before .distribute()`,
    );
  }
}

function checkSharing({ jobName, repetition }: OpenRequest, cardinality: number): void {
  if (jobName === undefined) throw invalid("Sharing needs a jobName that all trainers give");
  if (cardinality !== ENDLESS) {
    const size = cardinality >= 0 ? `${cardinality} elements` : "an unknown number of elements";
    throw invalid(
      `Sharing needs a dataset without end, and this one has ${size}; add .repeat() before ` +
        `.distribute()`,
    );
  }
  if (repetition > 0) {
    throw invalid(
      `Sharing reads one stream without end, so there is no repetition ${repetition} of it: put ` +
        `.repeat() before .distribute() instead of after it, and make a dataset anew for each iterator`,
    );
  }
}

function invalid(message: string): LeatError {
  return new LeatError("invalid_argument", message);
}
