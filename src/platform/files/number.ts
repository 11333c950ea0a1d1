import { rename, writeFile } from 'node:fs/promises'
import { type AtomicWriteCalls, writeFileAtomicSync } from './atomic.ts'
import { readIfThere } from './optional.ts'

/** One number in a file, replaced atomically: after a crash it holds the old number or the new. */
export type NumberFile = {
  /** Undefined when the file does not exist. Throws when it holds anything but a number. */
  read(): number | undefined
  /** The number is on the disk when this returns. */
  write(value: number): void
  /**
   * Survives the end of the process, but is not synced to the disk, and does not block the event loop: for a number that is written often.
   * Only one call at a time.
   */
  replace(value: number): Promise<void>
}

export function openNumberFile(path: string, calls?: AtomicWriteCalls): NumberFile {
  return {
    read() {
      const text = readIfThere(path)
      if (text === undefined) return undefined
      const value = /^\d{1,16}\n?$/.test(text) ? Number(text) : Number.NaN
      if (!Number.isSafeInteger(value)) throw new Error(`${path} does not hold a number`)
      return value
    },
    write: (value) => writeFileAtomicSync(path, `${value}\n`, calls),
    async replace(value) {
      const temporary = `${path}.next`
      await writeFile(temporary, `${value}\n`, { mode: 0o600 })
      await rename(temporary, path)
    },
  }
}
