import { openSync } from 'node:fs'

/** A descriptor to read a file by, or undefined where there is none. Any other trouble with it is thrown. */
export function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
