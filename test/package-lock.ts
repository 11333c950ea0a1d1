import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

export type LockedPackage = {
  version: string
  integrity?: string
  resolved?: string
  link?: boolean
  license?: string
  dev?: boolean
  devOptional?: boolean
  optional?: boolean
  bin?: Record<string, string>
  inBundle?: boolean
  hasInstallScript?: boolean
  os?: string[]
  cpu?: string[]
  libc?: string[]
  engines?: { node?: string }
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

export type PackageJson = {
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
  allowScripts: Record<string, boolean>
}

/** The manifest of the project, or of its tests with `folder` `test`. */
export function readPackageJson(folder = '.'): PackageJson {
  const read = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as Partial<PackageJson>
  return { dependencies: {}, devDependencies: {}, allowScripts: {}, ...read }
}

/** Every installed package by its folder, such as `node_modules/pg`; the project itself is left out. */
export function readLockedPackages(folder = '.'): Map<string, LockedPackage> {
  const lock = JSON.parse(readFileSync(join(root, folder, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockedPackage>
  }
  return new Map(Object.entries(lock.packages).filter(([folder]) => folder !== ''))
}

export function nameOf(folder: string): string {
  return folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length)
}

/** Folders of the named packages and of everything they depend on. */
export function closureOf(names: Iterable<string>, locked: ReadonlyMap<string, LockedPackage>): Set<string> {
  const reached = new Set<string>()
  const open = [...names].map((name) => findFolder('', name, locked))
  for (let folder = open.pop(); open.length > 0 || folder !== undefined; folder = open.pop()) {
    if (folder === undefined || reached.has(folder)) continue
    reached.add(folder)
    const { dependencies, optionalDependencies } = locked.get(folder) ?? {}
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      open.push(findFolder(folder, name, locked))
    }
  }
  return reached
}

/** Node's own rule: the nearest node_modules that holds the name, from the dependant outwards. */
function findFolder(from: string, name: string, locked: ReadonlyMap<string, LockedPackage>): string | undefined {
  for (let base = from; ; base = base.slice(0, Math.max(0, base.lastIndexOf('/node_modules/')))) {
    const folder = base === '' ? `node_modules/${name}` : `${base}/node_modules/${name}`
    if (locked.has(folder)) return folder
    if (base === '') return undefined
  }
}
