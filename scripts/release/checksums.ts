import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { hashOf } from './run.ts'

export const CHECKSUMS = 'SHA256SUMS'

/** Checksums of the files of a folder, in the format of `sha256sum --check`. A folder in it, such as one of a signing tool, has none. */
export function checksumsOf(folder: string): string {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== CHECKSUMS)
    .map(({ name }) => name)
    .toSorted()
    .map((name) => `${hashOf(join(folder, name), 'sha256')}  ${name}\n`)
    .join('')
}
