import { closeSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs'
import { readIfThere } from './read-optional.ts'

/** One whole number in a file, replaced as a whole: after a crash it holds the old number or the new. */
export type NumberFile = {
  /** Undefined when there is no file yet. Throws when there is one that holds something else. */
  read(): number | undefined
  /** On the disk when it returns. */
  write(value: number): void
}

export function openNumberFile(path: string): NumberFile {
  return {
    read() {
      const text = readIfThere(path)
      if (text === undefined) return undefined
      const value = /^\d{1,16}\n?$/.test(text) ? Number(text) : Number.NaN
      if (!Number.isSafeInteger(value)) throw new Error(`${path} does not hold a number`)
      return value
    },
    write(value) {
      const next = `${path}.next`
      const descriptor = openSync(next, 'w', 0o600)
      try {
        writeSync(descriptor, `${value}\n`)
        fsyncSync(descriptor)
      } finally {
        closeSync(descriptor)
      }
      renameSync(next, path)
    },
  }
}
