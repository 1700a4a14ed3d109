/**
 * The carrier between hosts: links over WebSockets, with a handshake, bounded buffers and
 * heartbeats. `docs/wire.md` specifies the format.
 */
export {
  type Pages,
  serveWebSocket,
  type WebSocketServer,
  type WebSocketServerOptions,
} from "./web_socket/server.ts";
export type { Admission } from "./web_socket/tokens/door.ts";
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
} from "./web_socket/tokens/token.ts";
export type { WebSocketLinkOptions } from "./web_socket/link.ts";
