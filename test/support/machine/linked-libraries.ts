import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The newest `GLIBC_2.N` that a program or library of the folder names in its dynamic symbols: the oldest glibc that all of them run on. */
export function glibcNeededBy(folder: string): number {
  const paths = globSync(['node_modules/**/*.{node,so}', 'node_modules/node-linux-*/bin/node', 'native/*.so.1'], {
    cwd: folder,
  })
  const versions = paths.flatMap((path) =>
    [...readFileSync(join(folder, path), 'latin1').matchAll(/GLIBC_2\.(\d+)/g)].map(([, minor]) => Number(minor)),
  )
  return Math.max(0, ...versions)
}
