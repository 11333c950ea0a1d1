import { readFileSync } from 'node:fs'

/** The text of a file, or undefined where there is none. Any other trouble with it is thrown. */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
