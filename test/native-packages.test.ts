import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { type LockedPackage, nameOf, readLockedPackages, readPackageJson } from './package-lock.ts'

const root = join(import.meta.dirname, '..')
/** The project and its tests have a manifest each. */
const MANIFESTS = ['.', 'test'].map((folder) => ({
  folder,
  locked: readLockedPackages(folder),
  ...readPackageJson(folder),
}))

/** Named by another package, which pins it exactly. */
const PINNED_BY: Record<string, string> = { '@duckdb/node-bindings': '@duckdb/node-api' }

/** npm leaves a binary out without a word when a version has none for the machine: each package shows here that it works. */
const PROOFS: Record<string, () => Promise<unknown>> = {
  litesvm: async () => new (await import('litesvm')).LiteSVM().latestBlockhash(),
  'helius-laserstream': () => import('helius-laserstream'),
  koffi: async () => (await import('koffi')).default.load('libc.so.6').func('int getpid(void)')() === process.pid,
  '@duckdb/node-bindings': async () => {
    const instance = await (await import('@duckdb/node-api')).DuckDBInstance.create(':memory:')
    return (await (await instance.connect()).runAndReadAll('select 1')).currentRowCount === 1
  },
  '@nomicfoundation/edr': async () => (await import('@nomicfoundation/edr')).l1HardforkLatest() > 0,
  deno: () => runBinary('@deno', 'deno'),
  bun: () => runBinary('@oven', 'bin/bun'),
  esbuild: () => runTool('esbuild'),
  '@biomejs/biome': () => runTool('biome'),
  '@bufbuild/buf': () => runTool('buf'),
  oxlint: () => runTool('oxlint'),
  'oxlint-tsgolint': () => runTool('tsgolint', '--help'),
  typescript: () => runTool('tsc'),
}

describe('native packages', () => {
  const native = MANIFESTS.flatMap((manifest) =>
    [...manifest.locked]
      .map(([folder, entry]) => ({ name: nameOf(folder), entry, manifest, binaries: binariesOf(entry, manifest) }))
      .filter(({ binaries }) => binaries.length > 0),
  )

  test('are all known and pinned by package.json', () => {
    assert.deepEqual(native.map(({ name }) => name).toSorted(), Object.keys(PROOFS).toSorted())
    for (const { name, entry, manifest } of native) {
      const { dependencies, devDependencies, locked } = manifest
      const owner = PINNED_BY[name]
      if (owner === undefined) assert.ok(name in dependencies || name in devDependencies, name)
      else assert.equal(locked.get(`node_modules/${owner}`)?.dependencies?.[name], entry.version)
    }
  })

  for (const { name, binaries } of native) {
    test(`${name} has binaries for linux arm64 and x64 in the lockfile`, () => {
      for (const cpu of ['arm64', 'x64']) {
        const fitting = binaries.filter(
          (binary) =>
            binary.os?.includes('linux') && binary.cpu?.includes(cpu) && binary.libc?.includes('glibc') !== false,
        )
        assert.ok(fitting.length > 0, cpu)
        for (const { integrity } of fitting) assert.match(integrity ?? '', /^sha512-/)
      }
    })
  }

  /** npm omits an optional package that requires a newer Node than npm runs on; the binaries run in the pinned Node only. */
  test('npm on Node 20 omits no binary', () => {
    const newer = native.flatMap(({ binaries }) =>
      binaries.filter(({ engines }) => /(>=?|\^) ?(2[1-9]|[3-9]\d)/.test(engines?.node?.split('||')[0] ?? '')),
    )
    assert.deepEqual(newer, [], 'take `engines` of these out of the lockfile (docs/decisions/0005)')
  })

  for (const [name, prove] of Object.entries(PROOFS)) {
    test(`${name} works on this machine`, async () => assert.ok(await prove()))
  }

  test('the pinned Node is the one that runs the tests', () => {
    assert.equal(process.versions.node, readPackageJson().devDependencies['node'])
  })
})

function binariesOf(entry: LockedPackage, { locked }: { locked: ReadonlyMap<string, LockedPackage> }): LockedPackage[] {
  return Object.keys(entry.optionalDependencies ?? {}).flatMap((name) => {
    const binary = locked.get(`node_modules/${name}`)
    return binary?.cpu === undefined ? [] : [binary]
  })
}

async function runTool(tool: string, flag = '--version'): Promise<string> {
  const [found] = MANIFESTS.flatMap(({ folder }) => globSync(join(root, folder, 'node_modules/.bin', tool)))
  assert.ok(found, `no ${tool}`)
  return run(found, flag)
}

/** The program itself, where the package's own launcher is made by an install script that does not run. */
async function runBinary(scope: string, file: string): Promise<string> {
  const [found] = globSync(join(root, 'test/node_modules', scope, '*', file))
  assert.ok(found, `no binary of ${scope}`)
  return run(found, '--version')
}

function run(program: string, flag: string): string {
  const { status, stdout, stderr } = spawnSync(program, [flag], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  return stdout + stderr
}
