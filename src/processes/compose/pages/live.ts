import type { Logger } from '../../../platform/telemetry/logger.ts'
import { shippedDocuments } from '../process/shipped-documents.ts'
import { jsonFile, NAMES_PATH, namesFile, type PageFile } from './bundle.ts'
import { openPageFiles, type PageDefinition } from './files.ts'

const LIVE_PAGE: PageDefinition = {
  module: 'dashboard',
  document: {
    title: 'Sluice · execution',
    meta: {
      name: 'description',
      content: 'What the chain is doing, live: throughput, blocks, contention, hot accounts.',
    },
    withoutScript:
      'This page shows a live stream and needs JavaScript. The same numbers: /v1/tps, /v1/contention, /v1/status.',
    base: 'page',
  },
  client: 'client/stream-client.ts',
}

export type PageOptions = {
  /** Folder of the built pages. */
  readonly target?: string
  /** Contract names by address. */
  readonly names?: ReadonlyMap<string, string>
  /** With a log, a failed build is a warning and the service runs without the page. */
  readonly log?: Logger
}

export type OpenedPage = {
  /** The file at a path. */
  readonly page: (path: string) => PageFile | undefined
  readonly files: readonly PageFile[]
  /** False if an existing build was up to date. */
  readonly built: boolean
}

/** The live page in memory, rebuilt if its sources changed. */
export async function openPage({ target, names = new Map(), log }: PageOptions = {}): Promise<OpenedPage> {
  try {
    const opened = await openPageFiles(LIVE_PAGE, target)
    const files = new Map([...opened.files, [NAMES_PATH, namesFile(names)], ...descriptions()])
    return { page: (path) => files.get(path), files: [...files.values()], built: opened.built }
  } catch (err) {
    if (log === undefined) throw err
    log.warn({ err }, 'the live page cannot be built, the service runs without it')
    return { page: () => undefined, files: [], built: false }
  }
}

/** OpenAPI and AsyncAPI descriptions under fixed paths. */
function descriptions(): [string, PageFile][] {
  const served = { '/page/openapi.json': 'openapi/execution', '/page/asyncapi.json': 'asyncapi/execution' }
  const documents = shippedDocuments()
  return Object.entries(served).flatMap(([path, name]) => {
    const found = documents.find((document) => document.name === name)
    return found === undefined ? [] : [[path, jsonFile(path, found.text())] as [string, PageFile]]
  })
}
