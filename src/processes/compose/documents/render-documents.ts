import { posix } from 'node:path'
import { gzipBytes } from '../../../platform/http/gzip.ts'
import { etagOf, type StaticFile } from '../../../platform/http/server/static-file.ts'
import { createTimeSlices } from '../../../platform/process/time-slices.ts'
import type { Endpoints } from '../access/endpoints.ts'
import { type DocumentSource, type MarkdownPage, readDocumentSources } from './document-sources.ts'
import { errorPages } from './error-pages.ts'
import { indexPage } from './index-page.ts'
import { type LinkTo, renderMarkdown } from './markdown-html.ts'
import { documentPolicy, pageHtml } from './page-html.ts'
import { createTar } from './tar.ts'

/** A new release changes the documents; until then a copy is good for this time. */
const MAX_AGE_SECONDS = 300

const TYPES: Readonly<Record<string, string>> = {
  md: 'text/markdown; charset=utf-8',
  json: 'application/json',
  proto: 'text/plain; charset=utf-8',
  mjs: 'text/javascript; charset=utf-8',
  py: 'text/x-python; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  // As text: it is an example to read.
  html: 'text/plain; charset=utf-8',
}

/**
 * Every file under `/docs` by its URL path: the documents as pages and as Markdown, an index, a page for each error, the API descriptions and the proto
 * files. Rendered once, in slices, so that other work of the process continues.
 */
export async function renderDocuments(endpoints: Endpoints): Promise<ReadonlyMap<string, StaticFile>> {
  const slices = createTimeSlices()
  const policy = documentPolicy()
  const files = new Map<string, StaticFile>()
  const sources: DocumentSource[] = []
  for (const source of readDocumentSources(endpoints)) {
    sources.push(source)
    if (slices.isSpent()) await slices.yield()
  }
  const urls = new Map(sources.map(({ path }) => [path, urlOf(path)]))

  async function add(url: string, type: string, body: string | Uint8Array): Promise<void> {
    const gzip = type === 'application/gzip' ? undefined : await gzipBytes(Buffer.from(body))
    files.set(url, {
      body: sharedBytes(Buffer.from(body)),
      type,
      etag: etagOf(body),
      gzip: gzip !== undefined && gzip.length < body.length ? sharedBytes(gzip) : undefined,
      maxAgeSeconds: MAX_AGE_SECONDS,
      headers: { 'content-security-policy': policy },
    })
    if (slices.isSpent()) await slices.yield()
  }

  async function addPage({ url, path, text }: MarkdownPage): Promise<void> {
    const to = (target: string) => relativeUrl(url, target)
    const linkTo: LinkTo = (target) => {
      if (/^(https?:|#)/.test(target)) return target
      const [file = '', anchor] = target.split('#')
      const found = urls.get(posix.join(posix.dirname(path), file))
      return found === undefined ? undefined : `${to(found)}${anchor === undefined ? '' : `#${anchor}`}`
    }
    const html = pageHtml({
      title: titleOf(text),
      body: renderMarkdown(text, linkTo),
      links: [
        ['Documents', to(INDEX_URL)],
        ['For customers', to('/docs/customers/')],
        ['Errors', to('/docs/errors')],
      ],
    })
    await add(url, 'text/html; charset=utf-8', html)
    // The same page without the slash at the end has other relative links.
    if (url.endsWith('/')) await addPage({ url: url.slice(0, -1), path, text })
  }

  for (const { path, text } of sources) {
    await add(rawUrlOf(path), TYPES[posix.extname(path).slice(1)] ?? 'text/plain; charset=utf-8', text)
    if (path.endsWith('.md')) await addPage({ url: urlOf(path), path, text })
  }
  const protos = new Map(
    sources.filter(({ path }) => path.startsWith('proto/')).map(({ path, text }) => [path, Buffer.from(text)]),
  )
  await add(PROTO_ARCHIVE_URL, 'application/gzip', await gzipBytes(createTar(protos)))
  urls.set('proto.tar.gz', PROTO_ARCHIVE_URL)
  for (const page of errorPages(sources)) await addPage(page)
  await addPage({ url: INDEX_URL, path: 'index.md', text: indexPage(sources, titleOf) })
  return files
}

const INDEX_URL = '/docs/'
const PROTO_ARCHIVE_URL = '/docs/proto.tar.gz'

/** The file as it is. */
function rawUrlOf(path: string): string {
  return `/docs/${path.replace(/^docs\//, '')}`
}

/** The page of a Markdown file: without its ending, `README.md` as its folder. Other files have no page. */
function urlOf(path: string): string {
  if (!path.endsWith('.md')) return rawUrlOf(path)
  return rawUrlOf(path)
    .replace(/README\.md$/, '')
    .replace(/\.md$/, '')
}

/** Relative, so that a proxy may serve everything under a path of its own. */
function relativeUrl(from: string, to: string): string {
  const fromFolder = from.slice(0, from.lastIndexOf('/') + 1)
  const path = posix.relative(fromFolder, to)
  const url = to.endsWith('/') && path !== '' ? `${path}/` : path
  return url === '' ? './' : url
}

function titleOf(text: string): string {
  return /^# (.+)$/m.exec(text)?.[1] ?? 'Documents'
}

/** A copy in shared memory, so that threads that serve the same file hold it once. */
function sharedBytes(bytes: Uint8Array): Buffer {
  const shared = Buffer.from(new SharedArrayBuffer(bytes.length))
  shared.set(bytes)
  return shared
}
