import { join } from 'node:path'
import { writeFileAtomic } from '../../../platform/files/atomic.ts'
import { readIfThere } from '../../../platform/files/optional.ts'

const FILE = 'last-backup.json'

/** Records in the state folder that a backup was made and read back, for the notice about a missing one. */
export async function recordBackup(stateDir: string, atMs: number): Promise<void> {
  await writeFileAtomic(join(stateDir, FILE), `${JSON.stringify({ made_at: new Date(atMs).toISOString() })}\n`)
}

/** Unix ms of the last backup; undefined where none is recorded. */
export function lastBackupMs(stateDir: string): number | undefined {
  const text = readIfThere(join(stateDir, FILE))
  if (text === undefined) return undefined
  try {
    const atMs = Date.parse((JSON.parse(text) as { made_at: string }).made_at)
    return Number.isNaN(atMs) ? undefined : atMs
  } catch {
    return undefined
  }
}
