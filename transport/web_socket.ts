/**
 * The carrier between hosts: links over WebSockets, with a handshake, bounded buffers and
 * heartbeats. `docs/wire.md` specifies the format. The server is not exported here, because few
 * programs load it: see `web_socket/server.ts`.
 */
export type { WebSocketServer, WebSocketServerOptions } from "./web_socket/server.ts";
export type { Page, Pages } from "./web_socket/http/pages.ts";
export type { Admission } from "./web_socket/tokens/authenticator.ts";
export {
  type Credential,
  webSocketConnector,
  type WebSocketConnectorOptions,
} from "./web_socket/connector.ts";
export {
  type AcceptedTokens,
  checkToken,
  type NamedToken,
  TokenSet,
  withdrawalOf,
} from "./web_socket/tokens/token.ts";
export { diallerName } from "./web_socket/tokens/proof.ts";
export type { WebSocketLinkOptions } from "./web_socket/link.ts";
export type { NearDialler, NearListener } from "./web_socket/slots.ts";
