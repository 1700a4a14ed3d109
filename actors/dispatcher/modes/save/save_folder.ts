/**
 * The job of a save is named after the target folder. The path is normalised, so all spellings of
 * it give the same name.
 */
import { LeatError } from "../../../../core/error.ts";
import { shownPath } from "../../../../core/shown_text.ts";
import type { RequestOf } from "../../../runtime/protocol.ts";
import type { DispatcherProtocol } from "../../protocol.ts";

type OpenRequest = RequestOf<DispatcherProtocol, "openIteration">;

const PREFIX = "distributedSave ";

/**
 * The request with the job's name and the normalised folder.
 * @throws LeatError `invalid_argument` for a path that is not absolute: each worker would resolve
 *   it differently, and it could be the folder of another save.
 */
export function namedBySaveFolder(request: OpenRequest): OpenRequest {
  const { parameters } = request;
  const save = parameters.save!;
  const folder = normalFolder(save.folder);
  if (!/^(\/|[A-Za-z]:[/\\])/.test(folder)) {
    throw new LeatError(
      "invalid_argument",
      "distributedSave: the folder must be an absolute path, the same on all workers, " +
        `got "${shownPath(save.folder)}"`,
    );
  }
  return {
    ...request,
    jobName: PREFIX + folder,
    parameters: { ...parameters, save: { ...save, folder } },
  };
}

/** @throws LeatError `invalid_argument` for a job that is no save and has the name of one. */
export function checkIsNotNamedAsSave({ jobName }: OpenRequest): void {
  if (jobName?.startsWith(PREFIX) !== true) return;
  throw new LeatError(
    "invalid_argument",
    `jobName must not begin with "${PREFIX}", which is for saves, got "${jobName}"; choose another`,
  );
}

/** Removes empty steps, `.` and `..` from a path, without looking at the file system. */
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
