/** The folder that the writers of a distributed save share. */
import type { Host } from "../../host.ts";
import type { Ledger } from "../ledger.ts";
import { fileNameOf, type Manifest, removeLeftover, storedPaths } from "../manifest.ts";
import type { DistributedSaveSettings } from "./work.ts";

export interface DistributedFolder {
  readonly host: Host;
  readonly settings: DistributedSaveSettings;
  readonly ledger: Ledger;
}

/**
 * Removes all files that the manifest does not list: those of writers that died or came too late.
 * Removes the ledger's head last. If the process dies before that, the next writer finds the head
 * next to the manifest of the same save, and removes the rest.
 */
export async function tidy(
  { host, settings, ledger }: DistributedFolder,
  { chunks }: Manifest,
): Promise<void> {
  const kept = new Set(chunks.map(({ name }) => name));
  for (const path of await storedPaths(host, settings.folder)) {
    if (!kept.has(fileNameOf(path))) removeLeftover(host, path);
  }
  removeLeftover(host, ledger.headPath);
}
