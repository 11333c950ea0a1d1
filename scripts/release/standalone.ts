import assert from 'node:assert/strict'
import { globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nameOf } from '../../test/package-lock.ts'
import { addLibatomic } from './libatomic.ts'
import type { Shrinkwrap } from './manifest.ts'
import { type Cpu, FILE_TIME } from './platforms.ts'
import { hashOf, npm, run } from './run.ts'

/** What runs nothing: headers, sources, types, source maps, and binaries for another C library. */
const UNUSED = [
  'node-linux-*/{include,share}',
  'koffi/{vendor,doc}',
  'zod/src',
  '@koromix/*/musl_*',
  '**/*.{map,d.ts,d.mts,d.cts}',
  '.bin',
  '.package-lock.json',
]

export type InstallPackages = (folder: string, cpu: Cpu) => void

/** What the shrinkwrap pins, checked by hash. npm takes packages from its cache and fetches the others. */
export const installFromRegistry: InstallPackages = (folder, cpu) => {
  const target = ['--os', 'linux', '--cpu', cpu, '--libc', 'glibc']
  npm(folder, 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', ...target)
}

/** The release with everything it needs to run, in one folder: the npm package, its packages, its Node, and the checksums of all files. */
export async function stageStandalone(
  packed: string,
  folder: string,
  cpu: Cpu,
  installPackages: InstallPackages = installFromRegistry,
): Promise<void> {
  mkdirSync(folder, { recursive: true })
  run('tar', ['-xzf', packed, '-C', folder, '--strip-components', '1'], folder)
  installPackages(folder, cpu)
  assertComplete(folder, cpu)
  const modules = join(folder, 'node_modules')
  for (const path of globSync(UNUSED, { cwd: modules })) rmSync(join(modules, path), { recursive: true, force: true })
  addLibatomic(join(folder, 'native'), cpu)
  writeFileSync(join(folder, 'SHA256SUMS'), sumsOf(folder, 'sha256'))
}

/** npm leaves out an optional package that it cannot install without a word; and nothing for development may be there. */
function assertComplete(folder: string, cpu: Cpu): void {
  const { packages } = JSON.parse(readFileSync(join(folder, 'npm-shrinkwrap.json'), 'utf8')) as Shrinkwrap
  const fits = (values: readonly string[] | undefined, value: string) => values?.includes(value) !== false
  const wanted = Object.entries(packages)
    .filter(
      ([path, { os, cpu: cpus, libc }]) => path !== '' && fits(os, 'linux') && fits(cpus, cpu) && fits(libc, 'glibc'),
    )
    .map(([path]) => nameOf(path))
  assert.deepEqual(
    packagesIn(folder),
    wanted.toSorted(),
    `the packages of linux-${cpu} are not those of the shrinkwrap`,
  )
}

/** Names of the installed packages; nested ones with their path. */
export function packagesIn(folder: string): string[] {
  const manifests = globSync(
    ['node_modules/{*,@*/*}/package.json', 'node_modules/**/node_modules/{*,@*/*}/package.json'],
    {
      cwd: folder,
    },
  )
  return [...new Set(manifests.map((path) => path.slice('node_modules/'.length, -'/package.json'.length)))].toSorted()
}

/** Checksums of all files of a folder, for `sha256sum --check` or `md5sum --check`. */
export function sumsOf(folder: string, algorithm: 'sha256' | 'md5'): string {
  // Unlike a glob, this lists hidden files too.
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted()
    .map((path) => `${hashOf(path, algorithm)}  ${path.slice(folder.length + 1)}\n`)
    .join('')
}

/** Packs a folder, with its own name as the first folder. The same content gives the same bytes. */
export function packTarball(parent: string, name: string, target: string, level: number): void {
  const stable = ['--sort=name', '--format=gnu', '--owner=0', '--group=0', '--numeric-owner', `--mtime=@${FILE_TIME}`]
  run('tar', [...stable, '--mode=u+rwX,go+rX,go-w', '-I', `gzip -n -${level}`, '-cf', target, name], parent)
}
