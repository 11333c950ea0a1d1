import { constants } from 'node:fs'
import { copyFile, link, open, rename, unlink } from 'node:fs/promises'

/** What link(2) returns where the file system has no hard links: exFAT, vfat, some network mounts. */
const NO_LINKS: ReadonlySet<string | undefined> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'])

export type MakeLink = (from: string, to: string) => Promise<void>

/**
 * Gives a complete file its name, and fails with EEXIST where there is a file already. The temporary name may be gone afterwards. Without hard links a
 * crash in between leaves an empty file.
 */
export async function linkOrMove(from: string, to: string, makeLink: MakeLink = link): Promise<void> {
  try {
    await makeLink(from, to)
  } catch (error) {
    if (!NO_LINKS.has((error as NodeJS.ErrnoException).code)) throw error
    // Takes the name first: a rename alone would replace a file that another process has created meanwhile.
    await (await open(to, 'wx', 0o600)).close()
    await rename(from, to).catch(async (failure: unknown) => {
      await unlink(to).catch(() => {})
      throw failure
    })
  }
}

/** Keeps the content of a file under a second, new name. */
export async function linkOrCopy(from: string, to: string, makeLink: MakeLink = link): Promise<void> {
  try {
    await makeLink(from, to)
  } catch (error) {
    if (!NO_LINKS.has((error as NodeJS.ErrnoException).code)) throw error
    await copyFile(from, to, constants.COPYFILE_EXCL)
    await using handle = await open(to, 'r')
    await handle.sync()
  }
}
