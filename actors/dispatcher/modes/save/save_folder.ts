/** The job of a save is named by its target folder, however a client spells the path. */
import { LeatError } from "../../../../core/error.ts";
import type { RequestOf } from "../../../runtime/protocol.ts";
import type { DispatcherProtocol } from "../../protocol.ts";

type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;

const PREFIX = "distributedSave ";

/**
 * A save's request, named by the normalised folder. The save writes to the path in that name.
 * @throws LeatError `invalid_argument` for a path that is not absolute: each worker would resolve it
 * in its own way, and it could be the folder of another save.
 */
export function namedBySaveFolder(request: OpenRequest): OpenRequest {
  const { parameters } = request;
  const save = parameters.save!;
  const folder = normalFolder(save.folder);
  if (!/^(\/|[A-Za-z]:[/\\])/.test(folder)) {
    throw new LeatError(
      "invalid_argument",
      `distributedSave: the folder has to be an absolute path, which is the same on all workers, got "${save.folder}"`,
    );
  }
  return {
    ...request,
    jobName: PREFIX + folder,
    parameters: { ...parameters, save: { ...save, folder } },
  };
}

/** @throws LeatError `invalid_argument` for another job with the name of a save. */
export function checkIsNotNamedAsSave({ jobName }: OpenRequest): void {
  if (jobName?.startsWith(PREFIX) !== true) return;
  throw new LeatError(
    "invalid_argument",
    `jobName must not begin with "${PREFIX}", as those of saves do, got "${jobName}"; choose another`,
  );
}

/** Removes empty steps, `.` and `..` from a path, by its text alone. */
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
