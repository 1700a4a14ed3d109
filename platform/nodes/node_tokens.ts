/** The tokens of a service node: which ones it accepts, and which one it proves to each peer. */
import { ANYONE, type Identity, TOKEN_HOLDER } from "../../actors/runtime/identity.ts";
import type { World } from "../../actors/runtime/world.ts";
import { LeatError } from "../../core/error.ts";
import {
  type AcceptedTokens,
  type Admission,
  type Credential,
  TokenSet,
} from "../../transport/web_socket.ts";
import { acceptedTokens, type TokenEntry, TokensFile } from "./tokens_file.ts";

/** Most nodes whose tokens are remembered; beyond it the oldest is forgotten. */
const KNOWN_MAX = 10_000;

/** The token options of a server. */
export interface TokenConfig {
  /** This server's own token: its holder may do everything, and this server proves it to others. */
  readonly token?: string;
  /**
   * Further tokens, each with a name and a role: a list, or a file that is read again when it
   * changes (`{ file }`). Each line of the file has a name, a role and a token.
   */
  readonly tokens?: readonly TokenEntry[] | { readonly file: string };
}

/** Which nodes this node dials. */
export type DialTarget =
  /** A dispatcher, which dials workers: it proves to each the token that the worker has proved. */
  | "workers"
  /** A worker, which dials its dispatcher at this address. */
  | { readonly service: string };

/** Chooses the token for each connection, incoming and outgoing. */
export class NodeTokens {
  /** Undefined if no token is required. */
  readonly accepted: AcceptedTokens | undefined;
  readonly #own: string | undefined;
  readonly #dialling: DialTarget | undefined;
  readonly #file: TokensFile | undefined;
  /** The token that each node has proved, by the node's name. */
  readonly #known = new Map<string, string>();

  /**
   * Without `dialling`, it proves no token.
   * @throws LeatError `invalid_argument` for malformed tokens, and errors of reading the file.
   */
  constructor(world: World, { token, tokens }: TokenConfig, dialling: DialTarget | undefined) {
    this.#own = token;
    this.#dialling = dialling;
    const own = token === undefined ? [] : [{ token, identity: TOKEN_HOLDER }];
    const ownSet = new TokenSet(own);
    if (tokens === undefined) {
      this.accepted = token === undefined ? undefined : ownSet;
      return;
    }
    const others = isFile(tokens) ? new TokensFile(world, tokens.file) : acceptedTokens(tokens);
    if (others instanceof TokensFile) this.#file = others;
    this.accepted = both(ownSet, others);
  }

  heard(node: string, { tokenId }: Admission): void {
    if (tokenId === undefined) return;
    this.#known.delete(node);
    this.#known.set(node, tokenId);
    if (this.#known.size > KNOWN_MAX) this.#known.delete(this.#known.keys().next().value!);
  }

  /**
   * The token to prove to a node.
   * @param self The name of this node, which may dial itself.
   * @throws LeatError `unavailable` for a node that must not be dialled.
   */
  credentialFor(node: string, self: string): Credential | undefined {
    const dialling = this.#dialling;
    if (dialling === undefined) return undefined;
    if (dialling === "workers") return this.#credentialOfWorker(node);
    const token = this.#own;
    const proof = token === undefined ? {} : { token };
    if (node === dialling.service) {
      return { ...proof, target: "service", identity: DISPATCHER };
    }
    if (node === self) return { ...proof, target: "node", identity: TOKEN_HOLDER };
    throw new LeatError(
      "unavailable",
      `${node} is not dialled: a worker dials its dispatcher alone`,
    );
  }

  /** Stops watching the file. */
  close(): void {
    this.#file?.close();
  }

  /** A dispatcher proves to a worker the worker's own token, so workers need no other token. */
  #credentialOfWorker(node: string): Credential {
    if (this.accepted === undefined) return { target: "node", identity: ANYONE };
    const id = this.#known.get(node);
    const own = this.#own === undefined ? undefined : { token: this.#own, identity: TOKEN_HOLDER };
    const named = id === undefined ? own : this.accepted.find(id);
    if (named === undefined) {
      const why = id === undefined
        ? "it has not dialled in since this dispatcher was started"
        : "its token was withdrawn";
      throw new LeatError("unavailable", `${node} is not dialled: ${why}`);
    }
    return { ...named, target: "node" };
  }
}

/** The identity of the node at the service's address that knows the token. */
export const DISPATCHER: Identity = { name: "the dispatcher", role: "admin" };

/** Tokens of two kinds; the first kind takes precedence. */
function both(first: AcceptedTokens, second: AcceptedTokens): AcceptedTokens {
  return {
    find: (id) => first.find(id) ?? second.find(id),
    whenChanged: (changed) => second.whenChanged?.(changed) ?? (() => {}),
  };
}

function isFile(tokens: NonNullable<TokenConfig["tokens"]>): tokens is { readonly file: string } {
  return "file" in tokens;
}
