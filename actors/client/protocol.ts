/** What the dispatcher and tasks ask of a client. */
import type { ElementGiverProtocol, ElementReaderProtocol } from "../worker/protocol.ts";

export interface ClientProtocol extends ElementReaderProtocol, ElementGiverProtocol {
  /** The dispatcher has changes for the client, which then sends a heartbeat at once. */
  wake(request: null): null;
}
