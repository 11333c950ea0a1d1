import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** For tests: a temporary folder (0700) that is removed when disposed of. */
export function makeTestFolder(): Disposable & { path: string; file(name: string): string } {
  const path = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  return {
    path,
    file: (name) => join(path, name),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  }
}
