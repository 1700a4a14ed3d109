/**
 * Repeats an action while something else runs. Skips a repetition while the last one still runs, and
 * waits for that in the end. Rejects at once if the action does, or in the end if the last one does.
 */
export async function actingEvery<T>(
  periodMs: number,
  act: () => Promise<void>,
  run: () => Promise<T>,
): Promise<T> {
  const failed = Promise.withResolvers<never>();
  let acting: Promise<void> | undefined;
  const timer = setInterval(() => {
    if (acting !== undefined) return;
    acting = act().finally(() => acting = undefined);
    acting.catch(failed.reject);
  }, periodMs);
  try {
    const result = await Promise.race([run(), failed.promise]);
    await acting;
    return result;
  } finally {
    clearInterval(timer);
    await Promise.allSettled([acting]);
  }
}
