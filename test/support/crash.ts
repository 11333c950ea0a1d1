import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

/** Ends a child at once, as a crash would, and waits until it is gone. One that has ended already is left alone. */
export async function crash(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}
