/** Starts processes while only a few more files may be open, and prints the failures. */
import { ChildProcess } from "../../../platform/process/child_process.ts";
import { LeatError } from "../../../core/error.ts";

/** With 12 more, every step of a start has all the files that it needs. */
const LEFT_MAX = 12;

function openFiles(): number {
  return [...Deno.readDirSync("/dev/fd")].length;
}

for (let left = 1; left <= LEFT_MAX; left++) {
  const before = openFiles();
  const held: Deno.FsFile[] = [];
  try {
    for (;;) held.push(Deno.openSync("/dev/null"));
  } catch {
    for (const file of held.splice(0, left)) file.close();
  }
  let failed: LeatError | undefined;
  try {
    const child = new ChildProcess({ name: "x", program: { command: "sh", args: ["-c", "exit"] } });
    child.link.catch(() => {});
    await child.ended;
  } catch (error) {
    failed = LeatError.from(error);
  }
  for (const file of held) file.close();
  if (failed === undefined) continue;
  const { code, message } = failed;
  console.log(JSON.stringify({ code, message, leaked: openFiles() - before }));
}
