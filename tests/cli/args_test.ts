/** Tests of the command line that all programs share. */

import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../assert.ts";
import { LeatError } from "../../core/error.ts";
import { failureText, parseCommandLine, UsageError, wantsHelp } from "../../cli/lib/args.ts";
import { importReader, isImporting, readByNode, readByStd } from "../../cli/lib/command_line.ts";
import { helpText } from "../../cli/lib/help.ts";
import {
  choice,
  flag,
  host,
  integer,
  number,
  operand,
  percent,
  text,
  texts,
} from "../../cli/lib/options.ts";
import { circularError } from "../lib/circular_error.ts";
import { until } from "../lib/until.ts";

const PROGRAM = {
  usage: "deno task example",
  summary: "An example with an option of each kind.",
  options: {
    quick: flag("Ends within a minute."),
    workers: integer({ help: "How many workers.", default: 4, min: 1, max: 64 }),
    storageLatencyMs: number({ help: "Added to every read.", placeholder: "MS", min: 0 }),
    carrier: choice(["inline", "thread"], { help: "Between actors.", default: "thread" }),
    report: text({ help: "Where the page goes.", placeholder: "FILE", default: "report.html" }),
    token: text({ help: "What clients have to know." }),
    peer: texts({ help: "An address to join.", placeholder: "URL" }),
  },
};

function parse(...args: string[]) {
  return parseCommandLine(PROGRAM, args);
}

Deno.test("parseCommandLine returns defaults for omitted options", async () => {
  assertEquals(await parse(), {
    quick: false,
    workers: 4,
    storageLatencyMs: undefined,
    carrier: "thread",
    report: "report.html",
    token: undefined,
    peer: [],
  });
});

Deno.test("parseCommandLine reads every kind of option, with a space or an equals sign", async () => {
  const values = await parse(
    ...["--quick", "--workers=2", "--storage-latency-ms", "0.5", "--carrier=inline"],
    ...["--report", "/tmp/a b.html", "--token=--x", "--peer", "ws://a:1", "--peer=ws://b:2"],
  );
  assertEquals(values, {
    quick: true,
    workers: 2,
    storageLatencyMs: 0.5,
    carrier: "inline",
    report: "/tmp/a b.html",
    token: "--x",
    peer: ["ws://a:1", "ws://b:2"],
  });
});

Deno.test("parseCommandLine reads a negative number as a value, and nothing after a bare --", async () => {
  const below = integer({ help: "", default: 0, min: -1 });
  const program = { usage: "", summary: "", options: { below, words: texts({ help: "" }) } };
  const read = (...args: string[]) => parseCommandLine(program, args);
  assertEquals(await read("--below", "-1"), { below: -1, words: [] });
  assertEquals(await read("--words", "-1.5", "--words=-2"), { below: 0, words: ["-1.5", "-2"] });
  await assertRejects(() => read("--", "--below", "-1"), UsageError, "is not an option");
});

Deno.test("parseCommandLine types its values by their options", async () => {
  const values = await parse("--quick");
  const quick: boolean = values.quick;
  const workers: number = values.workers;
  const carrier: "inline" | "thread" = values.carrier;
  const token: string | undefined = values.token;
  assertEquals([quick, workers, carrier, token], [true, 4, "thread", undefined]);
});

const REFUSED: [name: string, args: string[], message: string][] = [
  ["an unknown option, with the nearest", ["--worker", "2"], "--worker; did you mean --workers?"],
  ["an unknown option far from any", ["--zzz"], "there is no option --zzz"],
  ["an unknown short option", ["-x"], "there is no option -x"],
  ["a number that is none", ["--workers", "two"], "--workers is 'two', but has to be a whole"],
  ["a fraction for a whole number", ["--workers=1.5"], "has to be a whole number, 1 to 64"],
  ["a number below its bound", ["--workers=0"], "--workers is '0'"],
  ["a number above its bound", ["--workers=65"], "--workers is '65'"],
  ["a negative number below its bound", ["--storage-latency-ms=-1"], "at least 0"],
  ["another choice", ["--carrier", "pigeon"], "has to be one of inline, thread"],
  ["an option without its value", ["--report"], "--report needs a value: --report FILE"],
  ["an option in place of a value", ["--report", "--quick"], "--report needs a value"],
  ["a number below zero", ["--workers", "-5"], "--workers is '-5', but has to be a whole number"],
  ["letters with a dash in place of a value", ["--workers", "-x"], "--workers needs a value"],
  ["an option given twice", ["--workers", "1", "--workers", "2"], "given 2 times: give it once"],
  ["a flag with a value", ["--quick=maybe"], "--quick is 'maybe', but takes no value"],
  ["a stray word", ["now"], "'now' is not an option"],
  ["what follows a bare --", ["--", "now"], "'now' is not an option"],
];

for (const [name, args, message] of REFUSED) {
  Deno.test(`parseCommandLine refuses ${name}`, async () => {
    const error = await assertRejects(() => parse(...args), LeatError, message);
    assertEquals(error.code, "invalid_argument");
  });
}

Deno.test("parseCommandLine refuses a missing required option", async () => {
  const program = {
    usage: "x",
    summary: "x",
    options: { dispatcher: text({ help: "Its address.", required: true }) },
  };
  await assertRejects(
    () => parseCommandLine(program, []),
    LeatError,
    "--dispatcher is required",
  );
  const values = await parseCommandLine(program, ["--dispatcher=ws://a:1"]);
  const dispatcher: string = values.dispatcher;
  assertEquals(dispatcher, "ws://a:1");
});

Deno.test("readByNode and readByStd read a command line alike", async () => {
  const shape = { flags: ["quick"], valued: ["workers", "peer"] };
  const args = [
    "--quick",
    "--workers",
    "2",
    "--peer=a=b",
    "--peer",
    "b",
    "--odd=1",
    "-x",
    "--",
    "y",
  ];
  const expected = {
    texts: new Map([["quick", ["true"]], ["workers", ["2"]], ["peer", ["a=b", "b"]]]),
    unknown: ["odd", "x"],
    positionals: ["y"],
  };
  assertEquals(readByNode(args, shape), expected);
  const specifier: string = "@std/cli/parse-args";
  const std = await import(specifier).catch(() => undefined);
  if (std === undefined) console.log("JSR cannot be reached: readByStd is not compared");
  else assertEquals(readByStd(std.parseArgs, args, shape), expected);
});

Deno.test("importReader reads by Deno's parser if JSR refuses, or drops every packet", async () => {
  const args = ["--workers", "2"];
  const shape = { flags: [], valued: ["workers"] };
  const refused = await importReader(() => Promise.reject(new Error("no route")));
  assertEquals(refused(args, shape), readByNode(args, shape));
  const arrival = Promise.withResolvers<never>();
  const late = await importReader(() => arrival.promise, 1);
  assertEquals(late(args, shape), readByNode(args, shape));
  assert(isImporting());
  arrival.reject(new Error("no answer"));
  await until(() => !isImporting());
});

Deno.test("helpText names every option, its value and its default within its width", () => {
  const help = helpText(PROGRAM);
  assertStringIncludes(help, "Usage: deno task example [options]");
  assertStringIncludes(help, "--storage-latency-ms MS");
  assertStringIncludes(help, "How many workers. (default 4, 1 to 64)");
  assertStringIncludes(help, "--carrier inline|thread");
  assert(help.split("\n").every((line) => line.length <= 88), help);
});

Deno.test("wantsHelp stops at a bare --", () => {
  assert(wantsHelp(["--nonsense", "--help"]));
  assert(wantsHelp(["-h"]));
  assert(!wantsHelp(["--", "--help"]));
});

const PLACED = {
  usage: "deno task example",
  summary: "An example with a word that stands alone.",
  options: {
    module: operand({ help: "What to read.", placeholder: "MODULE" }),
    stallMax: percent({ help: "How much.", default: 2 }),
    stepMs: number({ help: "How long.", required: true, min: 1 }),
  },
};

Deno.test("operand: a positional word anywhere, refused if missing or superfluous", async () => {
  const values = { module: "a.ts", stallMax: 0.02, stepMs: 9 };
  assertEquals(await parseCommandLine(PLACED, ["a.ts", "--step-ms", "9"]), values);
  const behind = await parseCommandLine(PLACED, ["--step-ms", "9", "--stall-max", "5%", "a.ts"]);
  assertEquals(behind, { ...values, stallMax: 0.05 });
  await assertRejects(() => parseCommandLine(PLACED, []), LeatError, "MODULE is required");
  await assertRejects(() => parseCommandLine(PLACED, ["a.ts"]), LeatError, "--step-ms is required");
  await assertRejects(
    () => parseCommandLine(PLACED, ["a.ts", "b.ts"]),
    LeatError,
    "'b.ts' is not an option",
  );
  const help = helpText(PLACED);
  assertStringIncludes(help, "Usage: deno task example MODULE [options]");
  assertStringIncludes(help, "\n  MODULE ");
});

Deno.test("percent: a share, with or without its sign, of at most the whole", async () => {
  assertEquals(
    (await parseCommandLine(PLACED, ["a.ts", "--step-ms=1", "--stall-max=0.5"])).stallMax,
    0.005,
  );
  for (const wrong of ["101", "-1%", "some", "%"]) {
    await assertRejects(
      () => parseCommandLine(PLACED, ["a.ts", `--stall-max=${wrong}`]),
      LeatError,
      "--stall-max is",
    );
  }
});

Deno.test("host refuses what names no interface, and says what does", () => {
  const { read } = host({ help: "The interface.", default: "127.0.0.1" });
  assertEquals(read([]), "127.0.0.1");
  for (const name of ["0.0.0.0", "::1", "[::1]", "fe80::1%eth0", "my-host.example"]) {
    assertEquals(read([name]), name);
  }
  for (const name of ["a b", "", "ws://host", "host/path"]) {
    const { message } = assertThrows(() => read([name])) as Error;
    assertEquals(
      message,
      `is '${name}', but has to be a host's name or address, such as 0.0.0.0`,
    );
  }
});

Deno.test("failureText names each cause once, also of an error that is its own cause", () => {
  const error = new LeatError("internal", "outer", { cause: circularError("boom") });
  assertEquals(failureText(error), "error: outer (internal)\n  because: boom");
});
