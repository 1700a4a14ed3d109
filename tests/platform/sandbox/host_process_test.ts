/** The process of a runner's host, with a test as the process. */
import type { Link } from "../../../actors/runtime/link.ts";
import { LeatError } from "../../../core/error.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import type { ChildEnd } from "../../../platform/process/child_process.ts";
import { Edge } from "../../../platform/sandbox/edge.ts";
import { sandboxGrants } from "../../../platform/sandbox/grants.ts";
import { HostProcess, HostProcesses } from "../../../platform/sandbox/host/host_processes.ts";
import { inlinePair } from "../../../transport/inline.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";

const NEAR = { node: "worker", incarnation: "aa" };
const FAR = { node: "host", incarnation: "bb" };
const KILLED: ChildEnd = { code: 137, signal: "SIGKILL", stderrTail: "" };

/** The process of a host, which ends after it was killed. */
function childOf(serve: () => unknown) {
  const world = new DenoWorld({ logLevel: "off" });
  const [link, far] = inlinePair(world, NEAR, world, FAR);
  new Edge(Promise.resolve(far), FAR, { start: () => null, assign: () => null, serve });
  const ended = Promise.withResolvers<ChildEnd>();
  const served = { keepsProgram: true, link, end: ended.resolve };
  const child = {
    link: Promise.resolve(link),
    local: NEAR,
    ended: ended.promise,
    kill: () => ended.resolve(KILLED),
    ref: () => served.keepsProgram = true,
    unref: () => served.keepsProgram = false,
  };
  return Object.assign(served, { child });
}

/** A host that never answers. */
async function hostOf() {
  const { child, link, end } = childOf(() => new Promise(() => {}));
  const host = new HostProcess(sandboxGrants({}), {}, () => {}, child);
  await host.loaded;
  return { host, link, end };
}

/** Hosts whose first processes the machine lacks. */
function scarceHosts(lacking: number, retryMinMs = 0) {
  const retried: string[] = [];
  let starts = 0;
  const hosts = new HostProcesses(sandboxGrants({}), {}, {
    onRetry: ({ code }) => retried.push(code),
    retryMinMs,
    startChild: () => {
      if (++starts <= lacking) throw new LeatError("resource_exhausted", "EAGAIN");
      return childOf(() => "served").child;
    },
  });
  return { hosts, retried };
}

Deno.test("HostProcess says that the disk of the slot files is full, not that it was killed", async () => {
  const { host, link } = await hostOf();
  const answer = host.ask("serve", null);
  // As a link does when it cannot write a slot.
  link.close(new LeatError("resource_exhausted", "The disk of the slot files is full: free space"));
  const { code, message } = await assertRejects(() => answer, LeatError) as LeatError;
  assertEquals(code, "unavailable");
  assertStringIncludes(message, "is gone: The disk of the slot files is full: free space");
  const { code: later } = await assertRejects(() => host.ask("serve", null), LeatError);
  assertEquals([later, host.isAlive], ["unavailable", false]);
});

Deno.test("HostProcess says which limit of memory it reached, and what allows more", async () => {
  const { host, end } = await hostOf();
  const answer = host.ask("serve", null);
  end({ code: 134, signal: "SIGABRT", stderrTail: "memory allocation of 9 bytes failed\n" });
  const { code, message } = await assertRejects(() => answer, LeatError) as LeatError;
  assertEquals(code, "unavailable");
  assertStringIncludes(message, "--function-memory-mib");
});

Deno.test("HostProcess that does not load in time is ended, and makes way for the next", async () => {
  const ended = Promise.withResolvers<ChildEnd>();
  const child = {
    link: new Promise<Link>(() => {}),
    local: NEAR,
    ended: ended.promise,
    kill: () => ended.resolve(KILLED),
    ref: () => {},
    unref: () => {},
  };
  const host = new HostProcess(sandboxGrants({}), {}, () => {}, child, 1);
  const { code, message } = await assertRejects(() => host.loaded, LeatError) as LeatError;
  assertEquals([code, (await ended.promise).signal], ["unavailable", "SIGKILL"]);
  assertStringIncludes(message, "has not loaded within 0.001 s");
});

Deno.test("HostProcess says how it ended if nothing else is known", async () => {
  const { host, link } = await hostOf();
  const answer = host.ask("serve", null);
  link.close(new LeatError("unavailable", "The other process has closed its end"));
  const { code, message } = await assertRejects(() => answer, LeatError) as LeatError;
  assertEquals(code, "unavailable");
  assertStringIncludes(message, "it ended by SIGKILL");
});

Deno.test("HostProcesses tries again while the machine has no process for a host, and reports what lasts", async () => {
  const passing = scarceHosts(3);
  assertEquals(await passing.hosts.open().ask("decode", null), "served");
  // The first one was to be a spare one, for which nobody waits.
  assertEquals(passing.retried.length, 2);
  await passing.hosts.close();
  const lasting = scarceHosts(Infinity);
  const asked = lasting.hosts.open().ask("decode", null);
  const { code } = await assertRejects(() => asked, LeatError) as LeatError;
  assertEquals([code, lasting.retried.length], ["resource_exhausted", 7]);
  await lasting.hosts.close();
});

Deno.test("TaskHost waits for no process once its runner has ended", async () => {
  const { hosts } = scarceHosts(Infinity, 3_600_000);
  const host = hosts.open();
  const asked = host.ask("decode", null);
  host.close();
  const { code } = await assertRejects(() => asked, LeatError) as LeatError;
  assertEquals(code, "cancelled");
  await hosts.close();
});

Deno.test("TaskHost sends no request to a process that has died or hung up since the last one", async () => {
  const children: ReturnType<typeof childOf>[] = [];
  const hosts = new HostProcesses(sandboxGrants({}), {}, {
    startChild: () => {
      const number = children.length;
      const served = childOf(() => number);
      children.push(served);
      // How it ended is known only later.
      return { ...served.child, kill: () => {} };
    },
  });
  const host = hosts.open();
  const first = await host.ask("decode", null) as number;
  children[first]!.end(KILLED);
  await children[first]!.child.ended;
  const second = await host.ask("decode", null) as number;
  children[second]!.link.close(
    new LeatError("unavailable", "The other process has closed its end"),
  );
  await children[second]!.link.closed;
  const third = await host.ask("decode", null) as number;
  assertEquals(new Set([first, second, third]).size, 3);
  for (const { end } of children) end(KILLED);
  await hosts.close();
});

Deno.test("TaskHost.assign fails no later request if the process has died", async () => {
  const children: ReturnType<typeof childOf>[] = [];
  const hosts = new HostProcesses(sandboxGrants({}), {}, {
    startChild: () => {
      const served = childOf(() => "served");
      children.push(served);
      return served.child;
    },
  });
  const host = hosts.open();
  await host.ask("list", null);
  for (const { end } of children) end(KILLED);
  host.assign({ clusterId: "c", taskId: 7 });
  assertEquals(await host.ask("serviceRead", null), "served");
  await hosts.close();
});

Deno.test("HostProcesses lets the program end unless it keeps it, or is being closed", async () => {
  for (const keepsProgram of [true, false]) {
    const children: ReturnType<typeof childOf>[] = [];
    const hosts = new HostProcesses(sandboxGrants({}), {}, {
      keepsProgram,
      startChild: () => {
        const served = childOf(() => "served");
        children.push(served);
        return served.child;
      },
    });
    await hosts.open().ask("decode", null);
    // One decodes, and one is spare.
    assertEquals(children.map((child) => child.keepsProgram), [keepsProgram, keepsProgram]);
    const closed = hosts.close();
    assertEquals(children.map((child) => child.keepsProgram), [true, true]);
    await closed;
  }
});
