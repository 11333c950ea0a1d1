import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { nameOf, readLockedPackages, readPackageJson } from './package-lock.ts'

const root = join(import.meta.dirname, '..')
const INSTALLED_BYTES_MAX = 600_000_000

describe('npm ci of the project', () => {
  test('installs no package of test/package.json', () => {
    const installed = new Set([...readLockedPackages().keys()].map(nameOf))
    const ofTests = Object.keys(readPackageJson('test').dependencies)
    assert.ok(ofTests.length > 5)
    assert.deepEqual(
      ofTests.filter((name) => installed.has(name)),
      [],
    )
  })

  test(`installs files of less than ${INSTALLED_BYTES_MAX / 1_000_000} MB`, (t) => {
    // Folders that begin with a dot are caches and links, not packages.
    const packages = readdirSync(join(root, 'node_modules')).filter((name) => !name.startsWith('.'))
    assert.ok(packages.length > 50)
    const bytes = bytesOf(packages.map((name) => join(root, 'node_modules', name)))
    t.diagnostic(`${Math.round(bytes / 1_000_000)} MB`)
    assert.ok(bytes < INSTALLED_BYTES_MAX, `${bytes} bytes`)
  })

  test('prints errors only', () => {
    const lines = readFileSync(join(root, '.npmrc'), 'utf8').split('\n')
    for (const line of ['loglevel=error', 'fund=false', 'audit=false']) assert.ok(lines.includes(line), line)
  })
})

/** A file with several links counts once: the package `node` links its binary. */
function bytesOf(folders: readonly string[]): number {
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()),
  )
  const stats = files.map(({ parentPath, name }) => statSync(join(parentPath, name)))
  return [...new Map(stats.map(({ ino, size }) => [ino, size])).values()].reduce((sum, size) => sum + size, 0)
}
