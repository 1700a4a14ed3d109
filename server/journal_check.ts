/** Checks that a dispatcher can keep its journal in a folder. */
import { LeatError } from "../core/error.ts";
import { DenoWorld } from "../platform/deno_world.ts";
import { JOURNAL_NAME } from "./roles.ts";

/**
 * Opens and closes the journal before the dispatcher starts. So the caller gets the error of opening
 * it, not the error of an actor that failed.
 * @throws {LeatError} `failed_precondition` when another dispatcher holds it, `permission_denied`,
 * `data_loss` and others when it cannot be read.
 */
export async function checkJournal(folder: string): Promise<void> {
  try {
    const log = await new DenoWorld({ logFolder: folder }).openLog(JOURNAL_NAME);
    await log.close();
  } catch (cause) {
    const { code, message } = LeatError.from(cause, "internal");
    throw new LeatError(code, `Cannot use the journal in ${folder}: ${message}`, { cause });
  }
}
