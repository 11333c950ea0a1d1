/**
 * Builds the release in dist/release: the npm package with JavaScript built from the source, its bill of materials, the licences of its parts, and the
 * checksums of all three. The build is reproducible.
 *
 *     npm run release
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { openPage } from '../src/processes/compose/services/page.ts'
import { readLockedPackages } from '../test/package-lock.ts'
import { emitJavaScript } from './release/emit.ts'
import { thirdPartyLicences } from './release/licences.ts'
import { type CheckoutManifest, releaseManifests } from './release/manifest.ts'
import { reproducibleSbom } from './release/sbom.ts'

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
    await writePage(join(staged, 'page'))
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
      checksums: join(target, 'SHA256SUMS'),
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

async function writePage(folder: string): Promise<void> {
  const { files } = await openPage()
  mkdirSync(folder)
  for (const { path, body } of files) {
    // The running service generates the contract names.
    if (path.endsWith('/names.json')) continue
    writeFileSync(join(folder, path === '/' ? 'index.html' : path.replace(/^\/page\//, '')), body)
  }
}

function npm(folder: string, ...args: string[]): string {
  // npm runs with the Node of this checkout: another version packs different bytes.
  const PATH = `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`
  return execFileSync('npm', args, { cwd: folder, env: { ...process.env, PATH }, encoding: 'utf8', stdio: 'pipe' })
}

/** In the format of `sha256sum --check`. */
function checksumsOf(folder: string): string {
  const hashes = readdirSync(folder)
    .toSorted()
    .map(
      (name) =>
        `${createHash('sha256')
          .update(readFileSync(join(folder, name)))
          .digest('hex')}  ${name}\n`,
    )
  return hashes.join('')
}

function json(value: object): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}

if (import.meta.main) {
  const { checksums } = await makeRelease(join(root, 'dist/release'))
  process.stdout.write(readFileSync(checksums, 'utf8'))
}
