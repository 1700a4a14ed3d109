/**
 * Interrupts its program, as Ctrl-C does, in the middle of a step that is soon over. It is loaded
 * before the program: see interruption.ts. A signal of another process may come after the step.
 */
import process from "node:process";

const [[where, what] = []] = new URL(import.meta.url).searchParams;

let isInterrupted = false;

function interrupt(): void {
  if (!isInterrupted) Deno.kill(Deno.pid, "SIGINT");
  isInterrupted = true;
}

function atLine(pattern: RegExp): void {
  const writers: [object, string][] = [
    [process.stderr, "write"],
    [console, "log"],
    [console, "error"],
  ];
  for (const [owner, method] of writers) {
    const methods = owner as Record<string, (...args: unknown[]) => unknown>;
    const write = methods[method]!.bind(owner);
    methods[method] = (...args) => {
      const written = write(...args);
      if (pattern.test(String(args[0]))) interrupt();
      return written;
    };
  }
}

function atSpawn(): void {
  const { spawn } = Deno.Command.prototype;
  Deno.Command.prototype.spawn = function () {
    const child = spawn.call(this);
    interrupt();
    return child;
  };
}

function atContents(prefix: string): void {
  const { makeTempDirSync } = Deno;
  Deno.makeTempDirSync = (options) => {
    const folder = makeTempDirSync(options);
    if (options?.prefix !== prefix) return folder;
    const timer = setInterval(() => {
      if ([...Deno.readDirSync(folder)].length === 0) return;
      clearInterval(timer);
      interrupt();
    });
    return folder;
  };
}

if (where === "line") atLine(new RegExp(what!));
if (where === "spawn") atSpawn();
if (where === "contents") atContents(what!);
