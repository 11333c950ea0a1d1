import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { type LockedPackage, nameOf, readLockedPackages, readPackageJson } from './package-lock.ts'

const root = join(import.meta.dirname, '..')
const locked = readLockedPackages()

/** npm leaves a binary out without a word when a version has none for the machine: each package shows here that it works. */
const PROOFS: Record<string, () => Promise<unknown>> = {
  litesvm: async () => new (await import('litesvm')).LiteSVM().latestBlockhash(),
  'helius-laserstream': () => import('helius-laserstream'),
  '@biomejs/biome': () => runTool('biome'),
  '@bufbuild/buf': () => runTool('buf'),
  oxlint: () => runTool('oxlint'),
  'oxlint-tsgolint': () => runTool('tsgolint', '--help'),
  typescript: () => runTool('tsc'),
}

describe('native packages', () => {
  const native = [...locked]
    .filter(([, entry]) => binariesOf(entry).length > 0)
    .map(([folder, entry]) => ({ name: nameOf(folder), entry }))

  test('every one is known and pinned by package.json', () => {
    const { dependencies, devDependencies } = readPackageJson()
    assert.deepEqual(native.map(({ name }) => name).toSorted(), Object.keys(PROOFS).toSorted())
    for (const { name } of native) assert.ok(name in dependencies || name in devDependencies, name)
  })

  for (const { name, entry } of native) {
    test(`${name} has binaries for linux arm64 and x64 in the lockfile`, () => {
      for (const cpu of ['arm64', 'x64']) {
        const fitting = binariesOf(entry).filter(
          (binary) =>
            binary.os?.includes('linux') && binary.cpu?.includes(cpu) && binary.libc?.includes('glibc') !== false,
        )
        assert.ok(fitting.length > 0, cpu)
        for (const { integrity } of fitting) assert.match(integrity ?? '', /^sha512-/)
      }
    })
  }

  for (const [name, prove] of Object.entries(PROOFS)) {
    test(`${name} works on this machine`, async () => assert.ok(await prove()))
  }

  test('the pinned Node is the one that runs the tests', () => {
    assert.equal(process.versions.node, readPackageJson().devDependencies['node'])
  })
})

function binariesOf(entry: LockedPackage): LockedPackage[] {
  return Object.keys(entry.optionalDependencies ?? {}).flatMap((name) => {
    const binary = locked.get(`node_modules/${name}`)
    return binary?.cpu === undefined ? [] : [binary]
  })
}

async function runTool(tool: string, flag = '--version'): Promise<string> {
  const { status, stdout, stderr } = spawnSync(join(root, 'node_modules/.bin', tool), [flag], {
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
  return stdout + stderr
}
