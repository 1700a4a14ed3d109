/** Slots beside a WebSocket: who may share them, and what a hostile end can do with them. */
import { basename, dirname } from "node:path";
import type { Envelope } from "../../../actors/runtime/envelope.ts";
import type { Link, NodeId } from "../../../actors/runtime/link.ts";
import { nearDialler, NearFolder } from "../../../platform/process/near_slots.ts";
import { writableSlots } from "../../../platform/process/slot_files.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { decodeMessage, FramePool } from "../../../transport/codec.ts";
import { byeReason, writeHello } from "../../../transport/hello.ts";
import { Payload } from "../../../transport/payload.ts";
import { FRAME } from "../../../transport/web_socket/frames.ts";
import { serveWebSocket } from "../../../transport/web_socket/server.ts";
import {
  IncomingSlots,
  NEAR_SLOTS,
  type NearDialler,
  type NearListener,
  OutgoingSlots,
  readSlotFile,
  SLOT_TO_BYTES,
  writeInSlot,
  writeSlotFile,
  writeSlotFreed,
} from "../../../transport/web_socket/slots.ts";
import { webSocketConnector } from "../../../transport/web_socket.ts";
import { assert, assertEquals, assertThrows } from "../../assert.ts";
import { until } from "../../lib/until.ts";

const LISTENER: NodeId = { node: "listener", incarnation: "00000000000000aa" };
const DIALLER: NodeId = { node: "dialler", incarnation: "00000000000000bb" };

/** Both ends of a link over loopback. */
async function joined(near: NearListener | undefined, dialler: NearDialler = nearDialler) {
  const world = new DenoWorld({ logLevel: "off" });
  const arrived = Promise.withResolvers<Link>();
  const server = serveWebSocket({
    ...{ world, hostname: "127.0.0.1", port: 0, near: () => near, helloTimeoutMs: 60_000 },
    local: () => LISTENER,
    onLink: arrived.resolve,
  });
  const link = await webSocketConnector({ world, near: dialler, connectTimeoutMs: 60_000 }).connect(
    server.address,
    DIALLER,
  );
  return {
    link,
    listening: await arrived.promise,
    async [Symbol.asyncDispose]() {
      link.close();
      await link.released;
      await server.close();
    },
  };
}

function message(number: number, length: number): Envelope {
  return {
    ...{ kind: "tell", number, method: "take", target: { node: "dialler", path: "/x" } },
    source: { node: "listener", path: "/y", incarnation: `${LISTENER.incarnation}-1` },
    body: new Payload(new Uint8Array(length).fill(number)),
  };
}

/** Receives messages until their number is there: the length, first byte and way of each. */
async function received(link: Link, count: number) {
  const came: [number, number, boolean][] = [];
  link.start((envelope) => {
    const { bytes, cameInSlot } = (envelope as { body: Payload }).body;
    assert(bytes.every((byte) => byte === bytes[0]));
    came.push([bytes.length, bytes[0]!, cameInSlot]);
  });
  await until(() => came.length === count);
  return came;
}

/** Sends frames after a hello; the code of the bye that follows. */
async function refusalOf(address: string, frames: readonly Uint8Array[]): Promise<string> {
  const socket = new WebSocket(address);
  socket.binaryType = "arraybuffer";
  const last = Promise.withResolvers<Uint8Array>();
  let newest = new Uint8Array();
  socket.onmessage = ({ data }) => newest = new Uint8Array(data);
  socket.onclose = () => last.resolve(newest);
  await new Promise((resolve) => socket.onopen = resolve);
  for (
    const frame of [
      writeHello({ ...DIALLER, role: "dialler", messageBytesMax: 2 ** 20 }),
      ...frames,
    ]
  ) {
    socket.send(frame.slice());
  }
  return byeReason(decodeMessage(await last.promise))!.code;
}

/** The folder for temporary files. */
const TEMPORARY = (() => {
  const path = Deno.makeTempDirSync();
  Deno.removeSync(path);
  return dirname(path);
})();

/**
 * A folder with the name of one for slot files. It gets the name once it is filled: other processes
 * of this machine remove leftover folders.
 */
function newFolder(fill: (path: string) => void): string {
  const path = Deno.makeTempDirSync({ prefix: "leat-test-" });
  fill(path);
  const named = path.replace(/leat-test-(?=\w+$)/, "leat-slots-");
  Deno.renameSync(path, named);
  return named;
}

const entriesOf = (folder: NearFolder) =>
  [...Deno.readDirSync(`${TEMPORARY}/${folder.folder}`)].length;

Deno.test("a link within a host carries large messages in slots, more than there are, in order", async () => {
  const folder = new NearFolder();
  await using ends = await joined(folder);
  ends.listening.start(() => {});
  // The dialler's file is open at both ends, and its name is gone: the lock is left.
  const sizes = Array.from({ length: 3 * NEAR_SLOTS }, (_, i) => [300, 2_000_000][i % 2]!);
  await until(() => entriesOf(folder) === 1);
  sizes.forEach((size, i) => ends.listening.send(message(i + 1, size)));
  const came = await received(ends.link, sizes.length);
  assertEquals(came.map(([size, first]) => [size, first]), sizes.map((size, i) => [size, i + 1]));
  const inSlots = came.filter(([, , cameInSlot]) => cameInSlot).map(([size]) => size);
  assert(inSlots.length >= NEAR_SLOTS);
  assertEquals(new Set(inSlots), new Set([2_000_000]));
  folder.remove();
});

Deno.test("a link carries everything where the listener's folder is not this user's own and private", async () => {
  // With a file, but no lock: it is no leftover of another process.
  const open = newFolder((path) => {
    Deno.writeTextFileSync(`${path}/file`, "");
    Deno.chmodSync(path, 0o755);
  });
  const names = [
    "leat-slots-0000000000000000",
    basename(open),
    "../etc",
    "leat-slots-",
  ];
  for (const folder of names) {
    assertEquals(nearDialler.create(folder), undefined);
    await using ends = await joined({ folder, open: () => undefined });
    ends.listening.send(message(1, 1_000_000));
    assertEquals(await received(ends.link, 1), [[1_000_000, 1, false]]);
  }
  Deno.removeSync(open, { recursive: true });
});

Deno.test("a link carries everything where the listener cannot open the dialler's file", async () => {
  const folder = new NearFolder();
  await using ends = await joined({ folder: folder.folder, open: () => undefined });
  ends.listening.start(() => {});
  ends.listening.send(message(1, 1_000_000));
  assertEquals(await received(ends.link, 1), [[1_000_000, 1, false]]);
  folder.remove();
});

Deno.test("a link carries everything once a slot cannot be written", () => {
  const slots = new OutgoingSlots({
    write: () => {
      throw new Deno.errors.WriteZero("No space left on device");
    },
    read: () => {},
    close: () => {},
  });
  assertEquals(slots.put(new Uint8Array(100_000)), undefined);
  assertEquals(slots.put(new Uint8Array(100_000)), undefined);
});

Deno.test("a listener closes the link of a dialler that names a file elsewhere, or frees a slot that it does not hold", async () => {
  const frames = [
    writeSlotFile("../../etc/passwd"),
    writeSlotFile("0123456789abcde/"),
    writeSlotFreed(0),
    writeSlotFreed(99),
    Uint8Array.of(FRAME.SLOT_FREED, 0),
    writeInSlot(0, 9),
  ];
  for (const frame of frames) {
    const folder = new NearFolder();
    let opened = 0;
    const near: NearListener = {
      folder: folder.folder,
      open: (name) => (opened++, folder.open(name)),
    };
    const server = serveWebSocket({
      ...{
        world: new DenoWorld({ logLevel: "off" }),
        hostname: "127.0.0.1",
        port: 0,
        near: () => near,
        helloTimeoutMs: 60_000,
      },
      local: () => LISTENER,
      onLink: (link) => link.start(() => {}),
    });
    assertEquals(await refusalOf(server.address, [frame]), "invalid_argument");
    assertEquals(opened, 0);
    const { name, file } = nearDialler.create(folder.folder)!;
    const isSecondFile = frame[0] === FRAME.SLOT_FILE;
    const frames = isSecondFile ? [writeSlotFile(name), writeSlotFile(name)] : [
      writeSlotFile(name),
      frame,
    ];
    assertEquals(await refusalOf(server.address, frames), "invalid_argument");
    assertEquals(opened, 1);
    file.close();
    await server.close();
    folder.remove();
  }
});

Deno.test({
  name: "a listener opens no link, hard link or pipe that a dialler names",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    const folder = new NearFolder();
    const inFolder = (name: string) => `${TEMPORARY}/${folder.folder}/${name}`;
    const target = Deno.makeTempFileSync();
    // Deno would need permission to write everywhere for links.
    const make = 'ln -s "$1" link; ln "$1" hard; ln -s none nowhere; mkfifo pipe';
    const args = ["-c", `cd "$0" && { ${make}; }`, inFolder("."), target];
    await new Deno.Command("sh", { args }).output();
    for (const name of ["link", "hard", "nowhere", "pipe"]) {
      Deno.lstatSync(inFolder(name)); // It was made.
      // A pipe that was opened for writing would block this thread.
      assertEquals(folder.open(name), undefined, name);
    }
    const { name, file } = nearDialler.create(folder.folder)!;
    const opened = folder.open(name)!;
    opened.close();
    file.close();
    folder.remove();
    assertEquals(Deno.statSync(target).size, 0);
    Deno.removeSync(target);
  },
});

Deno.test("a dialler refuses a slot that does not exist, and a message beyond the end of the file", () => {
  const path = Deno.makeTempFileSync();
  const slots = new IncomingSlots(writableSlots(path), 2 ** 30, new FramePool());
  const refused = [
    writeInSlot(NEAR_SLOTS, 0),
    writeInSlot(0, SLOT_TO_BYTES + 1),
    writeInSlot(0, 10),
    writeInSlot(0, 0).subarray(0, 8),
  ];
  for (const frame of refused) assertThrows(() => slots.take(frame));
  slots.close();
  Deno.removeSync(path);
  assertEquals(readSlotFile(writeSlotFile("0123456789abcdef")), "0123456789abcdef");
});

Deno.test("a folder that a killed process leaves is removed by the next one", async () => {
  const left = newFolder((path) => {
    Deno.writeTextFileSync(`${path}/lock`, "");
    Deno.writeTextFileSync(`${path}/0123456789abcdef`, "a slot file whose listener was killed");
  });
  new NearFolder().remove();
  // Another process may have begun to remove it.
  await until(() => ![...Deno.readDirSync(TEMPORARY)].some(({ name }) => name === basename(left)));
});
