/** Checks of a join request that do not depend on existing jobs. */
import type { Identity } from "../../runtime/identity.ts";
import type { RequestOf } from "../../runtime/protocol.ts";
import { datasetFor } from "./datasets.ts";
import { invalid } from "../modes/mode.ts";
import { modeFor } from "../modes/modes.ts";
import type { DispatcherProtocol, JobParameters } from "../protocol.ts";
import type { Transaction } from "../transaction.ts";

/** The cardinality of an infinite dataset on the wire. */
const ENDLESS = -1;
/** Limit of a job's consumers: each takes memory for each round in every scheduler. */
const CONSUMERS_MAX = 65_536;
/** The prefix of the text that pages show in place of a missing job name. */
export const UNNAMED_JOB_PREFIX = "(job ";

type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;

/** Checks the request's values; its shape was checked before. */
export function checkRequest(
  { state, listedWorkers }: Transaction,
  request: OpenRequest,
  sender: Identity,
): void {
  const { jobName, parameters, consumerIndex } = request;
  const { numConsumers, sharing } = parameters;
  const { cardinality } = datasetFor(state, parameters.datasetId, sender);
  if (jobName === "") {
    throw invalid("jobName must not be empty; leave it out for a private job");
  }
  if (jobName?.startsWith(UNNAMED_JOB_PREFIX) === true) {
    throw invalid(
      `jobName must not begin with "${UNNAMED_JOB_PREFIX}": pages use that for jobs without a name`,
    );
  }
  if ((numConsumers === undefined) !== (consumerIndex === undefined)) {
    throw invalid("Give consumerIndex and numConsumers together, or neither of them");
  }
  if (numConsumers !== undefined) checkConsumers(request, numConsumers);
  modeFor(parameters).check(request, { listedWorkers, cardinality });
  if (sharing) checkSharing(request, cardinality);
  checkTargets(parameters);
}

function checkTargets({ targetWorkers, numConsumers }: JobParameters): void {
  if (targetWorkers === "local" && numConsumers !== undefined) {
    throw invalid(
      'numConsumers needs workers that all consumers can reach, but targetWorkers is "local"; leave ' +
        "one of the two out",
    );
  }
}

function checkConsumers(
  { jobName, consumerIndex = -1 }: OpenRequest,
  numConsumers: number,
): void {
  if (jobName === undefined) {
    throw invalid("numConsumers needs a jobName that all consumers give");
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
        `.repeat() before .distribute() instead of after it, and make a new dataset for each iterator`,
    );
  }
}
