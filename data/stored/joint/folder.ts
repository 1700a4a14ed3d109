/**
 * The folder in which the writers of a save meet.
 */
import type { Host } from "../../host.ts";
import type { Ledger } from "../ledger.ts";
import { type Manifest, nameOf, storedPaths } from "../manifest.ts";
import type { JointSaveSettings } from "./work.ts";

/** See the module. */
export interface JointFolder {
  readonly host: Host;
  readonly settings: JointSaveSettings;
  readonly ledger: Ledger;
}

/**
 * Removes whatever the manifest does not list, of writers that have died or came too late, and then
 * the ledger's head. The head goes last: if this writer dies first, the next one that finds the head
 * beside the manifest of the same save removes the rest.
 */
export async function tidy(
  { host, settings, ledger }: JointFolder,
  { chunks }: Manifest,
): Promise<void> {
  const kept = new Set(chunks.map(({ name }) => name));
  for (const path of await storedPaths(host, settings.folder)) {
    if (!kept.has(nameOf(path))) host.newFiles.remove(path);
  }
  ledger.end();
}
