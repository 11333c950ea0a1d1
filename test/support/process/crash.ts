import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

/** Kills a child with SIGKILL and waits for its exit. Does nothing for a child that has exited. */
export async function crash(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}
