/** The token file of a server: names, roles and tokens. It is read again when it changes. */
import { ACCESS_ROLES, type AccessRole } from "../../actors/runtime/identity.ts";
import type { Timer, World } from "../../actors/runtime/world.ts";
import { LeatError } from "../../core/error.ts";
import { type AcceptedTokens, type NamedToken, TokenSet } from "../../transport/web_socket.ts";

/** How often the file is checked, in ms. */
const POLL_MS = 1_000;
/** Shorter tokens could be guessed from a recorded proof. */
const TOKEN_LENGTH_MIN = 16;
/** Limit of the file's size, in bytes: a server does nothing else while it parses the file. */
const FILE_BYTES_MAX = 2 ** 20;
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
 * Parses a token file. Each line has a name, a role and a token, separated by spaces, and ends with a
 * line break. Empty lines and lines that begin with `#` are ignored.
 * @param path Named in errors, with the line. No error shows a token.
 * @throws LeatError `invalid_argument`.
 */
export function parseTokens(text: string, path: string): TokenEntry[] {
  // The last token of a file that is being written may be cut off.
  if (text !== "" && !text.endsWith("\n")) {
    throw wrong(
      path,
      "the last line has no line break, so the file may be incomplete; end it with one",
    );
  }
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
  readonly #readText: typeof Deno.readTextFileSync;
  readonly #changed = new Set<() => void>();
  #tokens: TokenSet;
  /** That of the text that was parsed last, see {@linkcode fingerprintOf}. */
  #fingerprint: string;
  /** The problem that the last check has found. */
  #problem: string | undefined;
  #timer: Timer | undefined;

  /**
   * Reads the file now, and checks it every second.
   * @throws LeatError `invalid_argument` when it is malformed, too large or no regular file, and
   * errors of reading it.
   */
  constructor(world: World, path: string, readText = Deno.readTextFileSync) {
    this.#world = world;
    this.#path = path;
    this.#readText = readText;
    this.#fingerprint = fingerprintOf(path);
    this.#tokens = tokenSet(parseTokens(this.#read(), path));
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
    this.#timer = this.#world.timer(POLL_MS, () => {
      this.#check();
      this.#scheduleCheck();
    });
  }

  /** Reads the file if it has changed. A problem that lasts is logged once. */
  #check(): void {
    try {
      const isChanged = this.#update();
      this.#problem = undefined;
      if (!isChanged) return;
    } catch (error) {
      const { message } = LeatError.from(error);
      if (message === this.#problem) return;
      this.#problem = message;
      this.#world.log("error", `The tokens stay as they were: ${message}`);
      return;
    }
    this.#world.log("info", `The tokens were read again from ${this.#path}`);
    for (const changed of [...this.#changed]) changed();
  }

  /**
   * Takes the file's tokens if it has changed, and returns whether it did. The next check reads it
   * again if this read fails, or if the file is written meanwhile.
   * @throws LeatError `invalid_argument` when it is malformed or too large, and errors of reading it.
   */
  #update(): boolean {
    const fingerprint = fingerprintOf(this.#path);
    if (fingerprint === this.#fingerprint) return false;
    const text = this.#read();
    if (fingerprintOf(this.#path) !== fingerprint) return false;
    this.#fingerprint = fingerprint;
    this.#tokens = tokenSet(parseTokens(text, this.#path));
    return true;
  }

  #read(): string {
    try {
      return this.#readText(this.#path);
    } catch (cause) {
      throw unreadable(this.#path, cause);
    }
  }
}

function unreadable(path: string, cause: unknown): LeatError {
  const { code, message } = LeatError.from(cause);
  return new LeatError(code, `The file of tokens ${path} cannot be read: ${message}`, { cause });
}

/**
 * Returns a value that changes with the content.
 * @throws LeatError `invalid_argument` if there is something other than a regular file: opening a
 * pipe would block this thread. Also if the file is too large. Otherwise errors of the file system.
 */
function fingerprintOf(path: string): string {
  const { isFile, mtime, ctime, size, ino, dev } = inspect(path);
  if (!isFile) throw wrong(path, "the tokens must be in a regular file");
  if (size > FILE_BYTES_MAX) {
    throw wrong(path, `the file has ${size} bytes; a file of tokens has at most ${FILE_BYTES_MAX}`);
  }
  // More than `mtime`, because a copy may keep that.
  return [mtime?.getTime(), ctime?.getTime(), size, ino, dev].join(" ");
}

function inspect(path: string): Deno.FileInfo {
  try {
    return Deno.statSync(path);
  } catch (cause) {
    throw unreadable(path, cause);
  }
}
