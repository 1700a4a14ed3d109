/** The file of tokens: its format, and its changes. */
import type { World } from "../../../actors/runtime/world.ts";
import { LeatError } from "../../../core/error.ts";
import { idOf } from "../../../transport/web_socket/tokens/proof.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { acceptedTokens, parseTokens, TokensFile } from "../../../platform/nodes/tokens_file.ts";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "../../assert.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

const A = "a-token-of-16-characters";
const B = "another-of-16-characters";

Deno.test("parseTokens reads names, roles and tokens, and skips comments", () => {
  const text = `# who may do what\n\nboss admin ${A}\r\n  team-a   client\t${B}  \n`;
  assertEquals(parseTokens(text, "tokens"), [
    { name: "boss", role: "admin", token: A },
    { name: "team-a", role: "client", token: B },
  ]);
});

Deno.test("parseTokens accepts several tokens of one name and role, for rotation", () => {
  assertEquals(parseTokens(`team client ${A}\nteam client ${B}\n`, "tokens").length, 2);
});

for (
  const [text, line, why] of [
    [`team client ${A}\nboss admin`, 2, "has 2 words"],
    [`team reader ${A}`, 1, "must be one of admin, worker, client, viewer"],
    ["team client short", 1, "16 to 4096"],
    [`team client ${A}\nteam admin ${B}`, 2, "has the role client above"],
    [`team client ${A}\nboss admin ${A}`, 2, 'the same token as "team"'],
    [`${"x".repeat(129)} client ${A}`, 1, "1 to 128"],
  ] as const
) {
  Deno.test(`parseTokens names file and line, and no token: ${why}`, () => {
    const error = assertThrows(() => parseTokens(`${text}\n`, "/etc/tokens"), LeatError);
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, `/etc/tokens, line ${line}: `);
    assertStringIncludes(error.message, why);
    for (const secret of [A, B, "short"]) assert(!error.message.includes(secret));
  });
}

Deno.test("parseTokens refuses a file whose last line may be incomplete", () => {
  const cut = `team client ${A}\nboss admin ${B}`;
  assertThrows(() => parseTokens(cut, "tokens"), LeatError, "the last line has no line break");
});

Deno.test("parseTokens refuses a file without tokens", () => {
  assertThrows(() => parseTokens("# nobody\n", "tokens"), LeatError, "there is no token in it");
});

Deno.test("acceptedTokens names the invalid entry", () => {
  const entries = [{ name: "a", role: "client", token: A }, {
    name: "b",
    role: "client",
    token: A,
  }];
  assertThrows(() => acceptedTokens(entries as never), LeatError, "tokens[1]: ");
});

/** A world whose only timer fires when a test says so. */
class Checks {
  readonly lines: string[] = [];
  #fire = () => {};

  readonly world = {
    timer: (_: number, fire: () => void) => (this.#fire = fire, { cancel: () => {} }),
    log: (_: string, line: string) => this.lines.push(line),
  } as unknown as World;

  /** The file is checked now. */
  readonly next = () => this.#fire();
}

const knows = (file: TokensFile) => [A, B].map((token) => file.find(idOf(token)) !== undefined);

Deno.test("TokensFile keeps its tokens while the file is malformed or missing, and logs the reason once", async () => {
  await using folder = await TempFolder.make({ tokens: `team client ${A}\n` });
  const path = `${folder.path}/tokens`;
  const { world, lines, next } = new Checks();
  const file = new TokensFile(world, path);
  let changes = 0;
  file.whenChanged(() => changes++);
  assertEquals(knows(file), [true, false]);
  await Deno.writeTextFile(path, `team client ${A}\nnonsense ${B}\n`);
  for (let check = 0; check < 3; check++) next();
  assertEquals(lines.length, 1);
  assertStringIncludes(lines[0]!, `The tokens stay as they were: ${path}, line 2: `);
  assert(!lines[0]!.includes(B));
  await Deno.remove(path);
  for (let check = 0; check < 3; check++) next();
  assertEquals(lines.length, 2);
  assertStringIncludes(lines[1]!, "cannot be read");
  assertEquals([knows(file), changes], [[true, false], 0]);
  await Deno.writeTextFile(path, `team client ${B}\n`);
  next();
  assertEquals([knows(file), changes], [[false, true], 1]);
});

Deno.test("TokensFile refuses a file above 1 MiB without reading it, and keeps its tokens", async () => {
  await using folder = await TempFolder.make({ tokens: `team client ${A}\n` });
  const path = `${folder.path}/tokens`;
  const { world, lines, next } = new Checks();
  let reads = 0;
  const readText = (path: string | URL) => (reads++, Deno.readTextFileSync(path));
  const file = new TokensFile(world, path, readText);
  const entry = `team client ${B}\n`;
  await Deno.writeTextFile(path, entry + "#".repeat(2 ** 20 - entry.length) + "\n");
  next();
  assertEquals([knows(file), reads], [[true, false], 1]);
  assertStringIncludes(lines[0]!, "at most 1048576");
  const error = assertThrows(() => new TokensFile(world, path, readText), LeatError);
  assertEquals([error.code, reads], ["invalid_argument", 1]);
  await Deno.writeTextFile(path, entry + "#".repeat(2 ** 20 - entry.length - 1) + "\n");
  next();
  assertEquals([knows(file), reads], [[false, true], 2]);
});

Deno.test("TokensFile reads the file again at the next check when a read fails", async () => {
  await using folder = await TempFolder.make({ tokens: `team client ${A}\n` });
  const path = `${folder.path}/tokens`;
  const { world, lines, next } = new Checks();
  let failing = false;
  const file = new TokensFile(world, path, (path) => {
    if (failing) throw new Error("Too many open files");
    return Deno.readTextFileSync(path);
  });
  await Deno.writeTextFile(path, `boss admin ${B}\n`);
  failing = true;
  for (let check = 0; check < 3; check++) next();
  assertEquals([knows(file), lines.length], [[true, false], 1]);
  assertStringIncludes(lines[0]!, "Too many open files");
  failing = false;
  next();
  assertEquals(knows(file), [false, true]);
});

Deno.test("TokensFile takes no tokens of a file that is written meanwhile, or whose last line is cut off", async () => {
  await using folder = await TempFolder.make({ tokens: `team client ${A}\n` });
  const path = `${folder.path}/tokens`;
  const { world, lines, next } = new Checks();
  let meanwhile = () => {};
  const file = new TokensFile(world, path, (path) => {
    const text = Deno.readTextFileSync(path);
    meanwhile();
    return text;
  });
  await Deno.writeTextFile(path, `boss admin ${B}\nteam client ${A.slice(0, 16)}`);
  next();
  assertEquals([knows(file), lines.length], [[true, false], 1]);
  assertStringIncludes(lines[0]!, "may be incomplete");
  await Deno.writeTextFile(path, `boss admin ${B}\n`);
  meanwhile = () => Deno.writeTextFileSync(path, `boss admin ${B}\nteam client ${A}\n`);
  next();
  assertEquals([knows(file), lines.length], [[true, false], 1]);
  meanwhile = () => {};
  next();
  assertEquals(knows(file), [true, true]);
});

Deno.test({
  name: "TokensFile reports a pipe in place of the file, and goes on checking",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    await using folder = await TempFolder.make({ tokens: `team client ${A}\n` });
    const path = `${folder.path}/tokens`;
    const { world, lines, next } = new Checks();
    const file = new TokensFile(world, path);
    await Deno.remove(path);
    await new Deno.Command("sh", { args: ["-c", 'mkfifo "$0"', path] }).output();
    next();
    assertEquals(lines.length, 1);
    assertStringIncludes(lines[0]!, "must be in a regular file");
    const refusal = assertThrows(() => new TokensFile(world, path), LeatError);
    assertEquals(refusal.code, "invalid_argument");
    await Deno.remove(path);
    await Deno.writeTextFile(path, `boss admin ${B}\n`);
    next();
    assertEquals(knows(file), [false, true]);
  },
});

Deno.test("TokensFile refuses a missing file, naming it", () => {
  const error = assertThrows(() => new TokensFile(new DenoWorld(), "/nowhere/tokens"), LeatError);
  assertEquals(error.code, "not_found");
  assertStringIncludes(error.message, "/nowhere/tokens");
});
