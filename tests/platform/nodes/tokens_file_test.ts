/** The file of tokens: its format, and its changes. */
import { LeatError } from "../../../core/error.ts";
import { idOf } from "../../../transport/web_socket/tokens/proof.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { acceptedTokens, parseTokens, TokensFile } from "../../../platform/nodes/tokens_file.ts";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "../../assert.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import { until } from "../../lib/until.ts";

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
  assertEquals(parseTokens(`team client ${A}\nteam client ${B}`, "tokens").length, 2);
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
    const error = assertThrows(() => parseTokens(text, "/etc/tokens"), LeatError);
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, `/etc/tokens, line ${line}: `);
    assertStringIncludes(error.message, why);
    for (const secret of [A, B, "short"]) assert(!error.message.includes(secret));
  });
}

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

Deno.test("TokensFile keeps its tokens while the file is malformed or missing, and logs the reason once", async () => {
  await using folder = await TempFolder.make({ tokens: `team client ${A}\n` });
  const path = `${folder.path}/tokens`;
  const lines: string[] = [];
  const world = new DenoWorld({ print: (_, line) => lines.push(line) });
  const file = new TokensFile(world, path, 5);
  let changes = 0;
  file.whenChanged(() => changes++);
  const knows = (token: string) => file.find(idOf(token)) !== undefined;
  assertEquals([knows(A), knows(B)], [true, false]);
  await Deno.writeTextFile(path, `team client ${A}\nnonsense ${B}\n`);
  await until(() => lines.length === 1);
  assertStringIncludes(lines[0]!, `The tokens stay as they were: ${path}, line 2: `);
  assert(!lines[0]!.includes(B));
  await Deno.remove(path);
  await until(() => lines.length === 2);
  assertStringIncludes(lines[1]!, "cannot be read");
  assertEquals([knows(A), knows(B), changes], [true, false, 0]);
  await Deno.writeTextFile(path, `team client ${B}\n`);
  await until(() => changes === 1);
  assertEquals([knows(A), knows(B)], [false, true]);
  file.close();
});

Deno.test("TokensFile refuses a missing file, naming it", () => {
  const error = assertThrows(() => new TokensFile(new DenoWorld(), "/nowhere/tokens"), LeatError);
  assertEquals(error.code, "not_found");
  assertStringIncludes(error.message, "/nowhere/tokens");
});
