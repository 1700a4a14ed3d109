/**
 * The server of `websocket.ts`, as a Web Worker or a program. A request is a big-endian uint32, the
 * answer a message of this many bytes. The server first sends or prints its port.
 */

/// <reference lib="deno.worker" />

const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
  const { socket, response } = Deno.upgradeWebSocket(request);
  socket.binaryType = "arraybuffer";
  let answer = new Uint8Array(0);
  socket.onmessage = ({ data }) => {
    const byteLength = new DataView(data).getUint32(0);
    if (answer.length !== byteLength) answer = new Uint8Array(byteLength);
    socket.send(answer);
  };
  return response;
});

if (import.meta.main && typeof self.postMessage !== "function") console.log(server.addr.port);
else self.postMessage(server.addr.port);
