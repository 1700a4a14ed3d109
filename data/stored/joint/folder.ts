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
 * Removes the ledger, and whatever the manifest does not list: of writers that have died, or that came
 * too late.
 */
export async function tidy(
  { host, settings, ledger }: JointFolder,
  { chunks }: Manifest,
): Promise<void> {
  ledger.end();
  const kept = new Set(chunks.map(({ name }) => name));
  for (const path of await storedPaths(host, settings.folder)) {
    if (!kept.has(nameOf(path))) host.newFiles.remove(path);
  }
}
