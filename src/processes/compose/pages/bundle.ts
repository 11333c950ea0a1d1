import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type * as Esbuild from 'esbuild'

/** What the document of a page contains besides its files. */
export type PageDocument = {
  readonly title: string
  /** One more `meta` element. */
  readonly meta: { readonly name: string; readonly content: string }
  /** Shown where scripts are off. */
  readonly withoutScript: string
  /** The folder in which its files are served: `console` for `/console/…`. */
  readonly base: string
}

export type PageSources = {
  /** Folder with page.css and the entries. */
  readonly folder: string
  /** The document of all pages, with names in braces for what differs. */
  readonly template: string
  readonly document: PageDocument
  readonly icon: string
  /** Entry of the page itself. */
  readonly script: string
  /** Entry of the script that runs before the first paint. */
  readonly first: string
  /** Entry of the client library, served as `execution-stream.js`, if the page has one. */
  readonly client?: string
  /** Folders and files whose change makes a build stale. */
  readonly watched: readonly string[]
}

const CLIENT_NAME = 'execution-stream.js'
/** Contract names by address, as JSON. */
export const NAMES_PATH = '/page/names.json'
/** Older builds of other sources are removed; a process that starts now may use a younger one. */
const KEPT_MS = 3_600_000
const BUILD_NAME = /^[0-9a-f]{16}$/
const GZIPPED = '.gz'
/** File names with a content hash; esbuild writes it in upper case. */
const HASHED_NAME = /-([A-Z0-9]{8}|[0-9a-f]{8})\.[a-z]+$/

/**
 * Bundles the page into a folder of `target` named by the hash of its sources, unless it exists. File names contain a hash of
 * their content, so that a page never loads the script of another version.
 */
export async function buildPage(sources: PageSources, target: string): Promise<{ folder: string; built: boolean }> {
  const name = await hashOf(sources.watched)
  const folder = join(target, name)
  if (await isThere(folder)) return { folder, built: false }
  await mkdir(target, { recursive: true })
  // Built in a temporary folder and renamed, so that no process reads a partial build; of concurrent builds the first wins.
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

/** esbuild has one helper process. Stopping it during a concurrent build would leave that build pending for ever. */
const helper = { users: 0 }

async function bundle(sources: PageSources, fresh: string): Promise<void> {
  const { build, stop } = await import('esbuild')
  helper.users += 1
  try {
    await bundleWith(build, sources, fresh)
  } finally {
    helper.users -= 1
    // Otherwise the helper process of some 30 MB keeps running.
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
  const clients = sources.client === undefined ? [] : [sources.client]
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
    ...clients.map((client) =>
      build({
        ...common,
        entryPoints: { [CLIENT_NAME.replace('.js', '')]: client },
        format: 'esm',
        minify: false,
      }),
    ),
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
    if (name === undefined) throw new Error(`the build of the page has no file like ${pattern}`)
    return name
  }
  const icon = await readFile(sources.icon)
  const iconName = `icon-${createHash('sha256').update(icon).digest('hex').slice(0, 8)}.svg`
  await writeFile(join(fresh, iconName), icon)
  const { title, meta, withoutScript, base } = sources.document
  const html = fillTemplate(await readFile(sources.template, 'utf8'), {
    title,
    base,
    'meta-name': meta.name,
    'meta-content': meta.content,
    'without-script': withoutScript,
    icon: iconName,
    style: nameOf(/^style-.*\.css$/),
    theme: nameOf(/^first-.*\.js$/),
    script: nameOf(/^page-.*\.js$/),
  })
  await writeFile(join(fresh, 'index.html'), html)
  await compressFiles(fresh)
}

function fillTemplate(template: string, values: Readonly<Record<string, string>>): string {
  return template.replaceAll(/\{([a-z-]+)\}/g, (_, name: string) => {
    const value = values[name]
    if (value === undefined) throw new Error(`the document of the pages has {${name}}, which has no value`)
    return value
  })
}

/** Compressed once at build time. */
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

/** One file of the page. */
export type PageFile = {
  readonly path: string
  readonly body: Uint8Array
  readonly type: string
  readonly etag: string
  /** The gzipped body, if it is smaller. */
  readonly gzip: Uint8Array | undefined
  /** The path contains a hash of the content. */
  readonly isImmutable: boolean
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  json: 'application/json; charset=utf-8',
}

/** The built page, by path: index.html at `/`, everything else under `base`. */
export async function readPageFiles(folder: string, base: `/${string}/`): Promise<ReadonlyMap<string, PageFile>> {
  const files = new Map<string, PageFile>()
  for (const name of (await readdir(folder)).toSorted()) {
    const type = CONTENT_TYPES[name.split('.').at(-1) ?? '']
    if (type === undefined) continue
    const path = name === 'index.html' ? '/' : `${base}${name}`
    const gzip = await readFile(join(folder, `${name}${GZIPPED}`)).catch(() => undefined)
    files.set(path, {
      ...fileOf(path, await readFile(join(folder, name)), type),
      gzip,
      isImmutable: HASHED_NAME.test(name),
    })
  }
  return files
}

/** What is served under `NAMES_PATH`. */
export function namesFile(names: ReadonlyMap<string, string>): PageFile {
  return jsonFile(NAMES_PATH, JSON.stringify(Object.fromEntries(names)))
}

/** A JSON file of the page. */
export function jsonFile(path: string, text: string): PageFile {
  return fileOf(path, Buffer.from(text), CONTENT_TYPES['json'] ?? '')
}

function fileOf(path: string, body: Uint8Array, type: string): PageFile {
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
  return { path, body, type, etag, gzip: undefined, isImmutable: false }
}

/** Hashes names and contents, so that touching a file does not make it stale. */
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
