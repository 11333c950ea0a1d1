import { join } from 'node:path'
import type { Logger } from '../../../platform/telemetry/logger.ts'
import { shippedDocuments } from '../process/documents.ts'
import {
  buildPage,
  jsonFile,
  NAMES_PATH,
  namesFile,
  type PageFile,
  type PageSources,
  readPageFiles,
} from './page-bundle.ts'

const ROOT = join(import.meta.dirname, '../../../..')
const DASHBOARD = join(ROOT, 'src/dashboard')
const TARGET = join(ROOT, 'dist/page')
/** The published package carries the page as it was built for it; there is no source of it to look after. */
const PACKAGED = import.meta.url.endsWith('.js') ? join(ROOT, 'page') : undefined
const SOURCES: PageSources = {
  folder: join(DASHBOARD, 'page'),
  script: join(DASHBOARD, 'page/main.tsx'),
  first: join(DASHBOARD, 'page/theme-first.ts'),
  client: join(DASHBOARD, 'client/stream-client.ts'),
  watched: [
    DASHBOARD,
    join(ROOT, 'src/contract'),
    join(ROOT, 'package-lock.json'),
    join(ROOT, 'src/processes/compose/services/page-bundle.ts'),
  ],
}

export type PageOptions = {
  /** Where built pages lie. */
  readonly target?: string
  /** Names of contracts that are worth showing instead of their addresses. */
  readonly names?: ReadonlyMap<string, string>
  /** With a log, a page that cannot be built is a warning: the service is worth more than its page. */
  readonly log?: Logger
}

export type OpenedPage = {
  /** What is served at a path, if anything. */
  readonly page: (path: string) => PageFile | undefined
  readonly files: readonly PageFile[]
  /** False when what was there was fresh. */
  readonly built: boolean
}

/** The live page, built first where its sources changed, and held in memory. */
export async function openPage({ target = TARGET, names = new Map(), log }: PageOptions = {}): Promise<OpenedPage> {
  try {
    const { folder, built } =
      PACKAGED === undefined ? await buildPage(SOURCES, target) : { folder: PACKAGED, built: false }
    const files = new Map([...(await readPageFiles(folder)), [NAMES_PATH, namesFile(names)], ...descriptions()])
    return { page: (path) => files.get(path), files: [...files.values()], built }
  } catch (err) {
    if (log === undefined) throw err
    log.warn({ err }, 'the live page cannot be built; the service runs without it')
    return { page: () => undefined, files: [], built: false }
  }
}

/** The interfaces of the service for programs that read them, under addresses that do not change. */
function descriptions(): [string, PageFile][] {
  const served = { '/page/openapi.json': 'openapi/execution', '/page/asyncapi.json': 'asyncapi/execution' }
  const documents = shippedDocuments()
  return Object.entries(served).flatMap(([path, name]) => {
    const found = documents.find((document) => document.name === name)
    return found === undefined ? [] : [[path, jsonFile(path, found.text())] as [string, PageFile]]
  })
}
