import { type AtomicWriteCalls, writeFileAtomicSync } from './atomic.ts'
import { readIfThere } from './optional.ts'

/** One number in a file, replaced atomically: after a crash it holds the old number or the new. */
export type NumberFile = {
  /** Undefined when the file does not exist. Throws when it holds anything but a number. */
  read(): number | undefined
  /** The number is on the disk when this returns. */
  write(value: number): void
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
  }
}
