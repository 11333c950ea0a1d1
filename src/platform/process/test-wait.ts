import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'

/** For tests: waits until the condition holds, looking often, and fails when it never does. The limit is for a slow machine that is busy too. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, withinMs = 60_000): Promise<void> {
  const endMs = performance.now() + withinMs
  for (;;) {
    // A machine that gave no time to look until it was over gets a last look.
    const isLast = performance.now() >= endMs
    if (await holds()) return
    if (isLast) assert.fail(`within ${withinMs} ms it did not become true that ${what}`)
    await pause(5)
  }
}
