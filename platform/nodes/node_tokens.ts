/** The tokens of a service node: which ones it accepts, and which one it proves to each peer. */
import { ANYONE, type Identity, TOKEN_HOLDER } from "../../actors/runtime/identity.ts";
import type { Link } from "../../actors/runtime/link.ts";
import type { World } from "../../actors/runtime/world.ts";
import { LeatError } from "../../core/error.ts";
import { isAddress } from "../../transport/connectors.ts";
import {
  type AcceptedTokens,
  type Admission,
  type Credential,
  TokenSet,
  withdrawalOf,
} from "../../transport/web_socket.ts";
import { acceptedTokens, type TokenEntry, TokensFile } from "./tokens_file.ts";

/** Limit of the nodes whose tokens are kept. Beyond it, the one that connected longest ago is forgotten. */
const PROVED_MAX = 10_000;

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
  /** A dispatcher, which dials workers. It proves to each worker the token that this worker has proved. */
  | "workers"
  /** A worker, which dials its dispatcher at this address. */
  | { readonly service: string };

/** The identity that a node's name belongs to: see `WebSocketServerOptions`. */
type OwnerOf = (node: string) => string | undefined;

/** Chooses the token for each connection, incoming and outgoing. */
export class NodeTokens {
  /** Undefined if no token is required. */
  readonly accepted: AcceptedTokens | undefined;
  readonly #own: string | undefined;
  readonly #dialling: DialTarget | undefined;
  readonly #ownerOf: OwnerOf | undefined;
  readonly #file: TokensFile | undefined;
  /** The token that each node has proved, by the node's name. */
  readonly #proved = new Map<string, string>();
  /** The links that this node opened with a token that can be withdrawn. */
  readonly #dialled = new Map<Link, Credential>();

  /**
   * Without `dialling`, it proves no token.
   * @throws LeatError `invalid_argument` for malformed tokens, and errors of reading the file.
   */
  constructor(
    world: World,
    { token, tokens }: TokenConfig,
    dialling: DialTarget | undefined,
    ownerOf?: OwnerOf,
  ) {
    this.#own = token;
    this.#dialling = dialling;
    this.#ownerOf = ownerOf;
    const own = token === undefined ? [] : [{ token, identity: TOKEN_HOLDER }];
    const ownSet = new TokenSet(own);
    if (tokens === undefined) {
      this.accepted = token === undefined ? undefined : ownSet;
      return;
    }
    const others = isFile(tokens) ? new TokensFile(world, tokens.file) : acceptedTokens(tokens);
    if (others instanceof TokensFile) this.#file = others;
    this.accepted = combined(ownSet, others);
    this.#file?.whenChanged(() => this.#closeWithdrawn());
  }

  /**
   * Keeps the token that a node has proved when it connected to this node. Other names than addresses
   * are never dialled; clients, which choose such names, must not displace workers here.
   */
  admitted(node: string, { tokenId }: Admission): void {
    if (tokenId === undefined || !isAddress(node)) return;
    this.#proved.delete(node);
    this.#proved.set(node, tokenId);
    if (this.#proved.size > PROVED_MAX) this.#proved.delete(this.#proved.keys().next().value!);
  }

  /**
   * Returns the token to prove to a node.
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
    throw notDialled(node, "a worker dials only its dispatcher");
  }

  /** Closes a link that this node has opened when the token that it proved is withdrawn. */
  dialled(link: Link, credential: Credential): void {
    if (credential.tokenId === undefined) return;
    this.#dialled.set(link, credential);
    link.closed.then(() => this.#dialled.delete(link));
    // Tokens may have changed since the proof.
    this.#closeWithdrawn();
  }

  /** Stops watching the file. */
  close(): void {
    this.#file?.close();
  }

  #closeWithdrawn(): void {
    for (const [link, credential] of [...this.#dialled]) {
      const withdrawal = withdrawalOf(this.accepted, credential);
      if (withdrawal !== undefined) link.close(withdrawal);
    }
  }

  /** A dispatcher proves to a worker the worker's own token, so workers need no other token. */
  #credentialOfWorker(node: string): Credential {
    if (this.accepted === undefined) return { target: "node", identity: ANYONE };
    const tokenId = this.#proved.get(node);
    if (tokenId === undefined) return this.#ownCredential(node);
    const named = this.accepted.find(tokenId);
    if (named === undefined) throw notDialled(node, "its token was withdrawn");
    const { name, role } = named.identity;
    if (role !== "worker" && role !== "admin") {
      throw notDialled(node, `its token has the role ${role} now`);
    }
    // As for its own connections: a link would end the grace time of a worker that cannot report.
    const owner = role === "admin" ? undefined : this.#ownerOf?.(node);
    if (owner !== undefined && owner !== name) {
      throw notDialled(
        node,
        `the worker there is of "${owner}", and its token is of "${name}" now`,
      );
    }
    return { ...named, tokenId, target: "node" };
  }

  /** The credential for a worker that has proved no token to this dispatcher. */
  #ownCredential(node: string): Credential {
    if (this.#own === undefined) {
      throw notDialled(node, "it has not dialled in since this dispatcher was started");
    }
    return { token: this.#own, identity: TOKEN_HOLDER, target: "node" };
  }
}

/** The identity of a dispatcher: the node at the service's address, if it knows the token. */
export const DISPATCHER: Identity = { name: "the dispatcher", role: "admin" };

function notDialled(node: string, why: string): LeatError {
  return new LeatError("unavailable", `${node} is not dialled: ${why}`);
}

/** Combines two sets of tokens; the first takes precedence. Only the second may change. */
function combined(first: AcceptedTokens, second: AcceptedTokens): AcceptedTokens {
  return {
    find: (id) => first.find(id) ?? second.find(id),
    whenChanged: (changed) => second.whenChanged?.(changed) ?? (() => {}),
  };
}

function isFile(tokens: NonNullable<TokenConfig["tokens"]>): tokens is { readonly file: string } {
  return "file" in tokens;
}
