/** Tests that decode images. */
import { decodingThreads } from "../../platform/media/jpeg/decoding_threads.ts";

/** A test that ends the threads which decode images: on a slow machine there are some sooner. */
export function imageTest(
  name: string,
  body: () => void | Promise<void>,
  { ignore = false }: { readonly ignore?: boolean } = {},
): void {
  Deno.test({
    ...{ name, ignore },
    fn: async () => {
      try {
        await body();
      } finally {
        await decodingThreads.close();
      }
    },
  });
}
