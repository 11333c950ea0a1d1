import { open } from 'node:fs/promises'

/** Makes sure that what was written to a file, or what a folder lists, is on the disk. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
