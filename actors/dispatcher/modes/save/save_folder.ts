/**
 * The job of a save belongs to the folder that is saved to, however a client spells its path.
 *
 * @module
 */
import { LeatError } from "../../../../core/error.ts";
import type { RequestOf } from "../../../runtime/protocol.ts";
import type { DispatcherProtocol } from "../../protocol.ts";

type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;

/** The names of saves begin so. */
const PREFIX = "distributedSave ";

/**
 * The request of a save, under the name that the dispatcher gives to saves to that folder. It is written to
 * under the path that the name holds.
 */
export function namedBySaveFolder(request: OpenRequest): OpenRequest {
  const { parameters } = request;
  const save = parameters.save!;
  const folder = normalFolder(save.folder);
  return {
    ...request,
    jobName: PREFIX + folder,
    parameters: { ...parameters, save: { ...save, folder } },
  };
}

/** @throws LeatError `invalid_argument` for another job under the name of a save. */
export function checkIsNotNamedAsSave({ jobName }: OpenRequest): void {
  if (jobName?.startsWith(PREFIX) !== true) return;
  throw new LeatError(
    "invalid_argument",
    `jobName must not begin with "${PREFIX}", as those of saves do, got "${jobName}"; choose another`,
  );
}

/** A path without empty steps, `.` and `..`, as far as its text tells. */
export function normalFolder(path: string): string {
  const root = path.startsWith("/") ? "/" : "";
  const steps: string[] = [];
  for (const step of path.split("/")) {
    if (step === "" || step === ".") continue;
    if (step !== "..") steps.push(step);
    else if (steps.length > 0 && steps.at(-1) !== "..") steps.pop();
    else if (root === "") steps.push(step);
  }
  return root + steps.join("/") || ".";
}
