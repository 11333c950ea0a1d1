import { openSync, readFileSync } from 'node:fs'

/** The text of a file, or undefined when it does not exist. Throws any other error. */
export function readIfThere(path: string): string | undefined {
  return ifThere(() => readFileSync(path, 'utf8'))
}

/** A descriptor to read a file by, or undefined when it does not exist. Throws any other error. */
export function openIfThere(path: string): number | undefined {
  return ifThere(() => openSync(path, 'r'))
}

function ifThere<T>(open: () => T): T | undefined {
  try {
    return open()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
