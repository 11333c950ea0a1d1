import { open } from 'node:fs/promises'
import type { TestContext } from 'node:test'

/** Replaces what syncs open files to the disk, as one that is full does. `path` is a file to make for it. */
export async function mockSync(t: TestContext, path: string, sync: () => Promise<void>) {
  await using handle = await open(path, 'w')
  return t.mock.method(Object.getPrototypeOf(handle) as typeof handle, 'sync', sync)
}
