/**
 * Builds the release in dist/release: the npm package with JavaScript built from the source, its bill of materials, the licences of its parts, for each
 * platform an archive and a Debian package that install without a network, and the checksums of all. The build is reproducible.
 *
 *     npm run release
 *     npm run release -- --cpu x64     # the archives of one platform
 *     npm run release -- --npm-only    # no archives
 */
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { openAccountPage } from '../src/processes/compose/pages/account.ts'
import type { PageFile } from '../src/processes/compose/pages/bundle.ts'
import { openConsole } from '../src/processes/compose/pages/console.ts'
import { openPage } from '../src/processes/compose/pages/live.ts'
import { readLockedPackages } from '../test/package-lock.ts'
import { findInPath } from './needs.ts'
import { CHECKSUMS, checksumsOf } from './release/checksums.ts'
import { packDebian } from './release/debian.ts'
import { emitJavaScript } from './release/emit.ts'
import { thirdPartyLicences } from './release/licences.ts'
import { type CheckoutManifest, releaseManifests } from './release/manifest.ts'
import { CPUS, type Cpu, PLATFORMS } from './release/platforms.ts'
import { npm } from './release/run.ts'
import { reproducibleSbom } from './release/sbom.ts'
import { type InstallPackages, packTarball, stageStandalone } from './release/standalone.ts'

const root = join(import.meta.dirname, '..')

/** Copied unchanged. */
const COPIED = [
  'sluice',
  'LICENSE',
  'README.md',
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  '.gitleaks.toml',
  'proto',
  'docs',
  'ops',
  'examples',
]

export type Release = {
  readonly tarball: string
  readonly sbom: string
  readonly licences: string
  readonly checksums: string
}

export async function makeRelease(target: string): Promise<Release> {
  const checkout = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as CheckoutManifest
  const locked = readLockedPackages()
  const { manifest, shrinkwrap } = releaseManifests(checkout, locked)

  const work = mkdtempSync(join(tmpdir(), 'sluice-release-'))
  try {
    // npm names the package in the bill of materials after its folder.
    const staged = join(work, manifest.name)
    const write = (name: string, text: string): void => writeFileSync(join(staged, name), text)
    emitJavaScript(join(root, 'src'), join(staged, 'lib'))
    for (const path of COPIED) cpSync(join(root, path), join(staged, path), { recursive: true })
    writePage(join(staged, 'page'), (await openPage()).files)
    writePage(join(staged, 'console'), (await openConsole()).files)
    writePage(join(staged, 'account'), (await openAccountPage()).files)
    const licences = thirdPartyLicences(root, shrinkwrap.packages, locked)
    write('package.json', json(manifest))
    write('npm-shrinkwrap.json', json(shrinkwrap))
    write('THIRD-PARTY-LICENSES', licences)

    rmSync(target, { recursive: true, force: true })
    mkdirSync(target, { recursive: true })
    npm(staged, 'pack', '--ignore-scripts', '--pack-destination', target)
    const made = join(target, readdirSync(target)[0] ?? '')
    const base = join(target, `${manifest.name}-${manifest.version}`)
    const release = {
      tarball: `${base}.tgz`,
      sbom: `${base}.cdx.json`,
      licences: join(target, 'THIRD-PARTY-LICENSES'),
      checksums: join(target, CHECKSUMS),
    }
    if (made !== release.tarball) renameSync(made, release.tarball)
    const sbom = npm(staged, 'sbom', '--package-lock-only', '--omit', 'dev', '--sbom-format', 'cyclonedx')
    writeFileSync(release.sbom, reproducibleSbom(sbom))
    writeFileSync(release.licences, licences)
    writeFileSync(release.checksums, checksumsOf(target))
    return release
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

export type Archives = { readonly tarball: string; readonly debian: string }

export type ArchiveOptions = {
  readonly cpu: Cpu
  readonly report: (line: string) => void
  readonly installPackages?: InstallPackages
  /** Version of the Debian package; by default that of the release. */
  readonly version?: string
  /** Fast and large, for tests. */
  readonly isUncompressed?: boolean
}

/** Adds the archive and the Debian package of a platform to a release. */
export async function addArchives(release: Release, options: ArchiveOptions): Promise<Archives> {
  const { cpu, report, isUncompressed = false } = options
  const target = join(release.checksums, '..')
  const { name, version, description } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  ) as CheckoutManifest
  const base = `${name}-${version}-linux-${cpu}`
  const debianVersion = options.version ?? version
  const archives = {
    tarball: join(target, `${base}.tar.gz`),
    debian: join(target, `${name}_${debianVersion}_${PLATFORMS[cpu].debian}.deb`),
  }
  const work = mkdtempSync(join(tmpdir(), 'sluice-release-'))
  try {
    report(`linux-${cpu}: installing the packages`)
    await stageStandalone(release.tarball, join(work, base), cpu, options.installPackages)
    report(`linux-${cpu}: packing ${basename(archives.tarball)}`)
    packTarball(work, base, archives.tarball, isUncompressed ? 1 : 6)
    report(`linux-${cpu}: packing ${basename(archives.debian)}`)
    packDebian(join(work, base), join(work, 'debian'), archives.debian, {
      cpu,
      version: debianVersion,
      description,
      ...(isUncompressed ? { compression: ['-Znone'] } : {}),
    })
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
  writeFileSync(release.checksums, checksumsOf(target))
  return archives
}

function writePage(folder: string, files: readonly PageFile[]): void {
  mkdirSync(folder)
  for (const { path, body } of files) {
    // The running service generates the contract names.
    if (path.endsWith('/names.json')) continue
    writeFileSync(join(folder, path === '/' ? 'index.html' : basename(path)), body)
  }
}

function json(value: object): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { cpu: { type: 'string' }, 'npm-only': { type: 'boolean' } } })
  const target = join(root, 'dist/release')
  const report = (line: string) => process.stdout.write(`${line}\n`)
  const cpus = values['npm-only'] === true ? [] : CPUS.filter((cpu) => values.cpu === undefined || values.cpu === cpu)
  if (values.cpu !== undefined && !CPUS.some((cpu) => cpu === values.cpu)) {
    process.stderr.write(`--cpu is one of ${CPUS.join(', ')}\n`)
    process.exit(2)
  }
  if (cpus.length > 0 && findInPath('dpkg-deb') === undefined) {
    process.stderr.write('The archives need dpkg-deb (Debian package dpkg). fix: install it, or pass --npm-only\n')
    process.exit(1)
  }
  report('npm package: building')
  const release = await makeRelease(target)
  for (const cpu of cpus) await addArchives(release, { cpu, report })
  report(readFileSync(release.checksums, 'utf8'))
  for (const name of readdirSync(target).toSorted()) {
    const mebibytes = statSync(join(target, name)).size / 2 ** 20
    report(`${mebibytes.toFixed(1).padStart(7)} MiB  ${name}`)
  }
}
