import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { nameOf, readLockedPackages } from '../../package-lock.ts'

const root = join(import.meta.dirname, '../../..')

/** Files of the archive by path, without npm's prefix `package/`. */
export function unpack(tarball: string, folder: string): Map<string, Buffer> {
  mkdirSync(folder, { recursive: true })
  run('tar', ['-xzf', tarball, '-C', folder, '--strip-components', '1'], folder)
  const paths = globSync('**/*', { cwd: folder, withFileTypes: true }).filter((entry) => entry.isFile())
  return new Map(
    paths.map((entry) => {
      const path = join(entry.parentPath, entry.name)
      return [path.slice(folder.length + 1), readFileSync(path)]
    }),
  )
}

/**
 * Installs with npm in an empty folder and returns the path of the command. Where the registry cannot be reached, the package's dependencies
 * are linked from the checkout.
 */
export function installRelease(tarball: string, folder: string, report: (line: string) => void): string {
  mkdirSync(folder)
  if (!isRegistryThere(folder)) {
    report('the registry cannot be reached: packages are linked from the checkout')
    return linkRelease(tarball, folder)
  }
  run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', tarball], folder)
  return join(folder, 'node_modules/.bin/sluice')
}

export function isRegistryThere(folder: string): boolean {
  const flags = ['--fetch-retries=0', '--fetch-timeout=15000']
  return spawnSync('npm', ['view', 'node', 'name', ...flags], { cwd: folder, timeout: 30_000 }).status === 0
}

function linkRelease(tarball: string, folder: string): string {
  const modules = join(folder, 'node_modules')
  const own = join(modules, 'sluice')
  const files = unpack(tarball, own)
  const { packages } = JSON.parse(String(files.get('npm-shrinkwrap.json'))) as { packages: Record<string, object> }
  const locked = [...readLockedPackages().keys()]
  for (const position of Object.keys(packages)) {
    const name = nameOf(position)
    const from = locked.find((each) => nameOf(each) === name && existsSync(join(root, each)))
    if (position !== '' && from !== undefined) link(join(root, from), join(modules, name))
  }
  link(join(root, 'node_modules/node'), join(modules, `node-linux-${process.arch}`))
  link(join(own, 'sluice'), join(modules, '.bin/sluice'))
  return join(modules, '.bin/sluice')
}

/** The packages of a standalone release, from the checkout instead of the registry. Only for the platform of this machine. */
export function copyPackages(folder: string): void {
  const { packages } = JSON.parse(readFileSync(join(folder, 'npm-shrinkwrap.json'), 'utf8')) as {
    packages: Record<string, object>
  }
  const locked = [...readLockedPackages().keys()]
  for (const position of Object.keys(packages)) {
    const from = locked.find((each) => nameOf(each) === nameOf(position) && existsSync(join(root, each)))
    if (position !== '' && from !== undefined) cpSync(join(root, from), join(folder, position), { recursive: true })
  }
  const runtime = join(folder, `node_modules/node-linux-${process.arch}`)
  cpSync(join(root, 'node_modules/node'), runtime, {
    recursive: true,
    filter: (path) => !path.endsWith('/node_modules'),
  })
}

function link(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true })
  if (!existsSync(to)) symlinkSync(from, to)
}

export function run(program: string, args: readonly string[], cwd: string, env = process.env): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, env, encoding: 'utf8', timeout: 240_000 })
  assert.equal(status, 0, `${program} ${args.join(' ')}: ${error?.message ?? ''}${stdout}${stderr}`)
  return stdout
}
