/** The token file of a server: names, roles and tokens. It is read again when it changes. */
import { ACCESS_ROLES, type AccessRole } from "../../actors/runtime/identity.ts";
import type { Timer, World } from "../../actors/runtime/world.ts";
import { LeatError } from "../../core/error.ts";
import { type AcceptedTokens, type NamedToken, TokenSet } from "../../transport/web_socket.ts";

/** How often the file is checked, in ms. */
const POLL_MS = 1_000;
/** Shorter tokens could be guessed from a recorded proof. */
const TOKEN_LENGTH_MIN = 16;
const NAME = /^[\x21-\x7e]{1,128}$/;
const TOKEN = /^[\x21-\x7e]{1,4096}$/;

/** A token, and the name and role of its holder. */
export interface TokenEntry {
  /** 1 to 128 printable ASCII characters without spaces. All tokens of a name have the same role. */
  readonly name: string;
  /** What the holder may do. */
  readonly role: AccessRole;
  /** 16 to 4,096 printable ASCII characters without spaces. */
  readonly token: string;
}

/**
 * Parses a token file. Each line has a name, a role and a token, separated by spaces. Empty lines and
 * lines that begin with `#` are ignored.
 * @param path Named in errors, with the line. No error shows a token.
 * @throws LeatError `invalid_argument`.
 */
export function parseTokens(text: string, path: string): TokenEntry[] {
  const check = new EntryCheck();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    const words = line.trim().split(/\s+/);
    if (words[0] === "" || words[0]!.startsWith("#")) continue;
    const where = `${path}, line ${index + 1}`;
    if (words.length !== 3) {
      throw wrong(where, `a line is "NAME ROLE TOKEN", and this one has ${words.length} words`);
    }
    const [name, role, token] = words as [string, string, string];
    check.add({ name, role: role as AccessRole, token }, where);
  }
  if (check.entries.length === 0) {
    throw wrong(path, "there is no token in it, so nobody could connect");
  }
  return check.entries;
}

/** Converts entries to the form for a listener. @throws LeatError `invalid_argument`. */
export function acceptedTokens(entries: readonly TokenEntry[]): TokenSet {
  const check = new EntryCheck();
  for (const [index, entry] of entries.entries()) check.add(entry, `tokens[${index}]`);
  return tokenSet(check.entries);
}

class EntryCheck {
  readonly entries: TokenEntry[] = [];
  readonly #byName = new Map<string, TokenEntry>();
  readonly #byToken = new Map<string, TokenEntry>();

  /** @throws LeatError `invalid_argument`. */
  add(entry: TokenEntry, where: string): void {
    const { name, role, token } = entry;
    if (!NAME.test(name)) throw wrong(where, "a name has 1 to 128 printable ASCII characters");
    if (!ACCESS_ROLES.includes(role)) {
      throw wrong(where, `the role of "${name}" must be one of ${ACCESS_ROLES.join(", ")}`);
    }
    if (!TOKEN.test(token) || token.length < TOKEN_LENGTH_MIN) {
      const form = `${TOKEN_LENGTH_MIN} to 4096 printable ASCII characters without spaces`;
      throw wrong(where, `the token of "${name}" must have ${form} (openssl rand -hex 32)`);
    }
    const sameName = this.#byName.get(name);
    if (sameName !== undefined && sameName.role !== role) {
      throw wrong(
        where,
        `"${name}" has the role ${sameName.role} above: give each role another name`,
      );
    }
    const sameToken = this.#byToken.get(token);
    if (sameToken !== undefined) {
      throw wrong(where, `"${name}" has the same token as "${sameToken.name}": give each its own`);
    }
    this.#byName.set(name, entry);
    this.#byToken.set(token, entry);
    this.entries.push(entry);
  }
}

function tokenSet(entries: readonly TokenEntry[]): TokenSet {
  return new TokenSet(
    entries.map(({ name, role, token }) => ({ token, identity: { name, role } })),
  );
}

function wrong(where: string, why: string): LeatError {
  return new LeatError("invalid_argument", `${where}: ${why}`);
}

export class TokensFile implements AcceptedTokens {
  readonly #world: World;
  readonly #path: string;
  readonly #pollMs: number;
  readonly #changed = new Set<() => void>();
  #tokens: TokenSet;
  /** See {@linkcode fingerprintOf}. */
  #fingerprint: string | undefined;
  #timer: Timer | undefined;

  /**
   * Reads the file now, and checks it every second.
   * @throws LeatError `invalid_argument` when it is malformed, and errors of reading it.
   */
  constructor(world: World, path: string, pollMs = POLL_MS) {
    this.#world = world;
    this.#path = path;
    this.#pollMs = pollMs;
    this.#fingerprint = fingerprintOf(path);
    this.#tokens = tokenSet(parseTokens(readFile(path), path));
    this.#scheduleCheck();
  }

  find(id: string): NamedToken | undefined {
    return this.#tokens.find(id);
  }

  whenChanged(changed: () => void): () => void {
    this.#changed.add(changed);
    return () => this.#changed.delete(changed);
  }

  /** Stops checking the file. */
  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#changed.clear();
  }

  #scheduleCheck(): void {
    this.#timer = this.#world.timer(this.#pollMs, () => {
      this.#check();
      this.#scheduleCheck();
    });
  }

  /** Reads the file if it has changed. Each problem with it is logged once. */
  #check(): void {
    const fingerprint = fingerprintOf(this.#path);
    if (fingerprint === this.#fingerprint) return;
    this.#fingerprint = fingerprint;
    try {
      this.#tokens = tokenSet(parseTokens(readFile(this.#path), this.#path));
    } catch (error) {
      const { message } = LeatError.from(error);
      this.#world.log("error", `The tokens stay as they were: ${message}`);
      return;
    }
    this.#world.log("info", `The tokens were read again from ${this.#path}`);
    for (const changed of [...this.#changed]) changed();
  }
}

function readFile(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch (cause) {
    const { code, message } = LeatError.from(cause);
    throw new LeatError(code, `The file of tokens ${path} cannot be read: ${message}`, { cause });
  }
}

/** Returns a value that changes with the content; undefined if the file cannot be inspected. */
function fingerprintOf(path: string): string | undefined {
  try {
    const { mtime, ctime, size, ino, dev } = Deno.statSync(path);
    // More than `mtime`, because a copy may keep that.
    return [mtime?.getTime(), ctime?.getTime(), size, ino, dev].join(" ");
  } catch {
    return undefined;
  }
}
