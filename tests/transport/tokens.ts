/** Tokens for tests of the WebSocket carrier. */
import { TOKEN_HOLDER } from "../../actors/runtime/identity.ts";
import {
  type Credential,
  TokenSet,
  type WebSocketConnectorOptions,
  type WebSocketServerOptions,
} from "../../transport/web_socket.ts";
import { StillWorld } from "../lib/still_world.ts";

/** A service for everybody who knows the token, however slowly they prove it. */
export function asking(
  token: string,
): Pick<WebSocketServerOptions, "tokens" | "isService" | "world"> {
  return {
    isService: true,
    tokens: new TokenSet([{ token, identity: TOKEN_HOLDER }]),
    world: new StillWorld({ logLevel: "off" }),
  };
}

/** A client with a token, or without. */
export function knowing(
  token: string | undefined,
  target: Credential["target"] = "service",
): Pick<WebSocketConnectorOptions, "credentials"> {
  if (token === undefined) return {};
  return { credentials: () => ({ token, target, identity: TOKEN_HOLDER }) };
}
