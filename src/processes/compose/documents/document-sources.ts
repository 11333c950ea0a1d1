import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { EndpointName, Endpoints } from '../access/endpoints.ts'

const ROOT = join(import.meta.dirname, '../../../..')

/** What is served. The decisions are for developers. */
const PATTERNS = [
  'docs/*.md',
  'docs/customers/*.md',
  'docs/openapi/*.json',
  'docs/asyncapi/*.json',
  'proto/*.proto',
  'examples/**/*.{md,mjs,js,html,py}',
  'CHANGELOG.md',
]

/** A file of the installation that is served under `/docs`. */
export type DocumentSource = { readonly path: string; readonly text: string }

/** A page: Markdown at a URL, with links that are relative to `path`. */
export type MarkdownPage = DocumentSource & { readonly url: string }

/** All served files, with the addresses of this service in those that are for customers. */
export function* readDocumentSources(endpoints: Endpoints): Generator<DocumentSource> {
  for (const path of globSync(PATTERNS, { cwd: ROOT }).toSorted()) {
    const text = readFileSync(join(ROOT, path), 'utf8')
    if (path.startsWith('docs/customers/')) yield { path, text: fillAddresses(text, endpoints) }
    else if (path.startsWith('docs/openapi/')) yield { path, text: fillOpenApi(path, text, endpoints) }
    else if (path.startsWith('docs/asyncapi/')) yield { path, text: fillAsyncApi(text, endpoints) }
    else yield { path, text }
  }
}

/** The addresses in the pages for customers, which are those of `npm start`. */
const DEFAULTS: Readonly<Record<EndpointName, string>> = {
  rpc: 'http://127.0.0.1:8899',
  ws: 'ws://127.0.0.1:8900',
  grpc: 'http://127.0.0.1:10010',
  entries: 'http://127.0.0.1:10011',
  sender: 'http://127.0.0.1:8901',
  indexer: 'http://127.0.0.1:8123',
  execution: 'http://127.0.0.1:8443',
}

/** An address that is not known is left for the reader to fill in from the handover card. */
function fillAddresses(text: string, endpoints: Endpoints): string {
  let filled = text
  for (const [name, url] of Object.entries(DEFAULTS))
    filled = filled.replaceAll(url, endpoints[name as EndpointName] ?? '…')
  return filled
}

const OPENAPI_ENDPOINTS: Readonly<Record<string, EndpointName>> = {
  bundle: 'rpc',
  execution: 'execution',
  indexer: 'indexer',
  sender: 'sender',
}

function fillOpenApi(path: string, text: string, endpoints: Endpoints): string {
  const name = OPENAPI_ENDPOINTS[basename(path, '.json')]
  if (name === undefined) return text
  const { servers: _servers, ...document } = JSON.parse(text) as Record<string, unknown>
  const url = endpoints[name]
  return print(url === undefined ? document : { ...document, servers: [{ url }] })
}

function fillAsyncApi(text: string, { execution }: Endpoints): string {
  const document = JSON.parse(text) as { servers: Record<string, object> }
  if (execution === undefined) return text
  const { host, pathname, protocol } = new URL(execution)
  const server = { host, pathname, protocol: protocol === 'https:' ? 'wss' : 'ws' }
  const servers = Object.keys(document.servers).map((name) => [name, server])
  return print({ ...document, servers: Object.fromEntries(servers) })
}

function print(document: object): string {
  return `${JSON.stringify(document, null, 2)}\n`
}
