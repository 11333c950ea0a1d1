import { link, readFile, unlink } from 'node:fs/promises'
import { createFileExclusive } from '../../../platform/files/atomic.ts'
import type { StateFolder } from '../../../platform/files/state-folder.ts'
import { secureRandom } from '../../../platform/process/random.ts'

/** A name for this state folder among the machines that share a store, made once: its copy of the audit log goes by it. */
export async function machineId(state: StateFolder): Promise<string> {
  const path = state.file('machine-id')
  const read = () => readFile(path, 'utf8').then((text) => text.trim())
  const known = await read().catch(() => undefined)
  if (known !== undefined) return known
  const made = Buffer.from(secureRandom.bytes(8)).toString('hex')
  const draft = `${path}.${made}`
  await createFileExclusive(draft, `${made}\n`)
  // A link takes the name whole or not at all: where another process was quicker, its id counts.
  await link(draft, path).catch(() => {})
  await unlink(draft)
  return read()
}
