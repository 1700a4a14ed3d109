/** Decodes one image again and again, several times at once. */

import { Images } from "../../../../platform/media/images.ts";

const thread = globalThis as unknown as {
  onmessage: (message: MessageEvent<Uint8Array>) => void;
  postMessage(message: string): void;
};

thread.onmessage = ({ data }) => {
  const images = new Images();
  const repeat = async () => {
    while (true) await images.decode(data);
  };
  for (let i = 0; i < 3; i++) repeat();
  thread.postMessage("begun");
};
