/**
 * A child process for the tests of `tests/lib/child.ts`: prints its name, answers lines, and stays.
 */

const [mode = "stay"] = Deno.args;
// Before the first line, which tells the test that all is set up.
if (mode === "deaf") Deno.addSignalListener("SIGTERM", () => console.log("no"));

console.log(`child of mode ${mode}`);
console.error("a word on standard error");

switch (mode) {
  case "leave":
    Deno.exit(3);
    break;
  case "echo":
    for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
      console.log(`heard ${text.trim()}`);
    }
    break;
}
setInterval(() => {}, 1_000);
