import { link, readFile, unlink } from 'node:fs/promises'
import { createFileExclusive } from '../../../platform/files/atomic.ts'
import type { StateFolder } from '../../../platform/files/state-folder.ts'
import { secureRandom } from '../../../platform/process/random.ts'

/** The id of this state folder among machines that share a store, created once. It names the local copy of the audit log. */
export async function machineId(state: StateFolder): Promise<string> {
  const path = state.file('machine-id')
  const read = () => readFile(path, 'utf8').then((text) => text.trim())
  const known = await read().catch(() => undefined)
  if (known !== undefined) return known
  const made = Buffer.from(secureRandom.bytes(8)).toString('hex')
  const draft = `${path}.${made}`
  await createFileExclusive(draft, `${made}\n`)
  // A hard link is atomic: if another process was faster, its id is used.
  await link(draft, path).catch(() => {})
  await unlink(draft)
  return read()
}
