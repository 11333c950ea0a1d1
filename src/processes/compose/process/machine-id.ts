import { readFile } from 'node:fs/promises'
import { isServiceError } from '../../../core/error.ts'
import { createFileAtomic } from '../../../platform/files/atomic.ts'
import type { StateFolder } from '../../../platform/files/state-folder.ts'
import { secureRandom } from '../../../platform/process/random.ts'

/** The id of this state folder among machines that share a store, created once. It names the local copy of the audit log. */
export async function machineId(state: StateFolder): Promise<string> {
  const path = state.file('machine-id')
  const read = () => readFile(path, 'utf8').then((text) => text.trim())
  const known = await read().catch(() => undefined)
  if (known !== undefined) return known
  const made = Buffer.from(secureRandom.bytes(8)).toString('hex')
  // If another process was faster, its id is used.
  await createFileAtomic(path, (put) => put(`${made}\n`)).catch((error: unknown) => {
    if (!isServiceError(error, 'already-exists')) throw error
  })
  return read()
}
