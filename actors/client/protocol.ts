/**
 * What clients can be asked.
 *
 * @module
 */

/** What the dispatcher asks of a client. */
export interface ClientProtocol {
  /** Says that the dispatcher has news: the client sends a heartbeat at once. */
  wake(request: null): null;
}
