import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type * as Esbuild from 'esbuild'

export type PageSources = {
  /** Folder with index.html, page.css, icon.svg and the entries. */
  readonly folder: string
  /** Entry of the page itself. */
  readonly script: string
  /** Entry that runs before the first paint. */
  readonly first: string
  /** Entry handed to customers under the name `execution-stream.js`. */
  readonly client: string
  /** Everything whose change makes a build stale: folders and files. */
  readonly watched: readonly string[]
}

const CLIENT_NAME = 'execution-stream.js'
/** Names of contracts, from address to name. Empty until whoever serves the page knows some. */
export const NAMES_PATH = '/page/names.json'
/** Builds of other sources that are older than this are removed; a process that is just starting may still want a younger one. */
const KEPT_MS = 3_600_000
const BUILD_NAME = /^[0-9a-f]{16}$/
const GZIPPED = '.gz'
/** Names that carry a hash of the content; the bundler's is in capitals. */
const HASHED_NAME = /-([A-Z0-9]{8}|[0-9a-f]{8})\.[a-z]+$/

/**
 * Bundles the page into a folder of `target` that is named by its sources, unless it is there already. File names carry a hash of
 * their content, so that a page never runs with the script of another version.
 */
export async function buildPage(sources: PageSources, target: string): Promise<{ folder: string; built: boolean }> {
  const name = await hashOf(sources.watched)
  const folder = join(target, name)
  if (await isThere(folder)) return { folder, built: false }
  await mkdir(target, { recursive: true })
  // Built beside its place and moved there whole: nobody sees half a page, and of several who build at once one is enough.
  const fresh = await mkdtemp(join(target, 'new-'))
  try {
    await bundle(sources, fresh)
    await rename(fresh, folder)
  } catch (error) {
    if (!(await isThere(folder))) throw error
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
  await removeOld(target, name)
  return { folder, built: true }
}

/** The bundler has one helper for a whole process. Ended under a build beside it, that one would never hear of its end. */
const helper = { users: 0 }

async function bundle(sources: PageSources, fresh: string): Promise<void> {
  const { build, stop } = await import('esbuild')
  helper.users += 1
  try {
    await bundleWith(build, sources, fresh)
  } finally {
    helper.users -= 1
    // It would stay as a process of its own, some 30 MB, as long as this one runs.
    if (helper.users === 0) await stop()
  }
}

async function bundleWith(build: typeof Esbuild.build, sources: PageSources, fresh: string): Promise<void> {
  const common = {
    // Comments in the bundle name files relative to this folder, not to the working directory of the process.
    absWorkingDir: sources.folder,
    bundle: true,
    minify: true,
    target: 'es2024',
    write: true,
    outdir: fresh,
    logLevel: 'silent',
    legalComments: 'eof',
  } as const
  const [page] = await Promise.all([
    build({
      ...common,
      entryPoints: { page: sources.script, style: join(sources.folder, 'page.css') },
      entryNames: '[name]-[hash]',
      chunkNames: 'part-[hash]',
      format: 'esm',
      splitting: true,
      metafile: true,
      jsx: 'automatic',
      jsxImportSource: 'preact',
    }),
    build({
      ...common,
      entryPoints: { [CLIENT_NAME.replace('.js', '')]: sources.client },
      format: 'esm',
      minify: false,
    }),
  ])
  const first = await build({
    ...common,
    entryPoints: { first: sources.first },
    entryNames: '[name]-[hash]',
    format: 'iife',
    metafile: true,
  })
  const outputs = [...Object.keys(page.metafile.outputs), ...Object.keys(first.metafile.outputs)].map((path) =>
    basename(path),
  )
  const nameOf = (pattern: RegExp): string => {
    const name = outputs.find((output) => pattern.test(output))
    if (name === undefined) throw new Error(`the page's build made no file like ${pattern}`)
    return name
  }
  const icon = await readFile(join(sources.folder, 'icon.svg'))
  const iconName = `icon-${createHash('sha256').update(icon).digest('hex').slice(0, 8)}.svg`
  await writeFile(join(fresh, iconName), icon)
  const template = await readFile(join(sources.folder, 'index.html'), 'utf8')
  const html = template
    .replace('{icon}', iconName)
    .replace('{style}', nameOf(/^style-.*\.css$/))
    .replace('{theme}', nameOf(/^first-.*\.js$/))
    .replace('{script}', nameOf(/^page-.*\.js$/))
  await writeFile(join(fresh, 'index.html'), html)
  await compressFiles(fresh)
}

/** Compressed once here, not for every visitor. */
async function compressFiles(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const body = await readFile(join(folder, name))
    const gzip = gzipSync(body, { level: 9 })
    if (gzip.length < body.length) await writeFile(join(folder, `${name}${GZIPPED}`), gzip)
  }
}

async function removeOld(target: string, current: string): Promise<void> {
  const { mtimeMs: builtMs } = await stat(join(target, current))
  for (const name of await readdir(target)) {
    if (name === current || !BUILD_NAME.test(name)) continue
    const path = join(target, name)
    const { mtimeMs } = await stat(path)
    if (builtMs - mtimeMs > KEPT_MS) await rm(path, { recursive: true, force: true })
  }
}

async function isThere(folder: string): Promise<boolean> {
  return (await stat(join(folder, 'index.html')).catch(() => undefined)) !== undefined
}

/** One file of the page as it is served. */
export type PageFile = {
  readonly path: string
  readonly body: Uint8Array
  readonly type: string
  readonly etag: string
  /** The same, gzipped, where that is smaller. */
  readonly gzip: Uint8Array | undefined
  /** The path carries a hash of the content. */
  readonly isImmutable: boolean
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  json: 'application/json; charset=utf-8',
}

/** The built page, by path: index.html at `/`, everything else under `/page/`. */
export async function readPageFiles(folder: string): Promise<ReadonlyMap<string, PageFile>> {
  const files = new Map<string, PageFile>()
  for (const name of (await readdir(folder)).toSorted()) {
    const type = CONTENT_TYPES[name.split('.').at(-1) ?? '']
    if (type === undefined) continue
    const path = name === 'index.html' ? '/' : `/page/${name}`
    const gzip = await readFile(join(folder, `${name}${GZIPPED}`)).catch(() => undefined)
    files.set(path, {
      ...fileOf(path, await readFile(join(folder, name)), type),
      gzip,
      isImmutable: HASHED_NAME.test(name),
    })
  }
  files.set(NAMES_PATH, namesFile(new Map()))
  return files
}

/** What is served under `NAMES_PATH`. */
export function namesFile(names: ReadonlyMap<string, string>): PageFile {
  return jsonFile(NAMES_PATH, JSON.stringify(Object.fromEntries(names)))
}

/** A JSON text that is served beside the page. */
export function jsonFile(path: string, text: string): PageFile {
  return fileOf(path, Buffer.from(text), CONTENT_TYPES['json'] ?? '')
}

function fileOf(path: string, body: Uint8Array, type: string): PageFile {
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
  return { path, body, type, etag, gzip: undefined, isImmutable: false }
}

/** Names and contents of all files: a touched file that did not change is not stale. */
async function hashOf(watched: readonly string[]): Promise<string> {
  const hash = createHash('sha256')
  for (const path of watched) {
    for (const file of await filesUnder(path)) {
      hash.update(`${file.slice(path.length)}\0`)
      hash.update(await readFile(file))
      hash.update('\0')
    }
  }
  return hash.digest('hex').slice(0, 16)
}

async function filesUnder(path: string): Promise<string[]> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true }).catch(() => undefined)
  if (entries === undefined) return [path]
  return entries
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted()
}
