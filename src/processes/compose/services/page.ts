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
const UI = join(ROOT, 'src/ui')
const TARGET = join(ROOT, 'dist/page')
/** The published package contains the built page instead of its source. */
const PACKAGED = import.meta.url.endsWith('.js') ? join(ROOT, 'page') : undefined
const SOURCES: PageSources = {
  folder: join(DASHBOARD, 'page'),
  script: join(DASHBOARD, 'page/main.tsx'),
  icon: join(UI, 'icon.svg'),
  first: join(UI, 'theme-first.ts'),
  client: join(DASHBOARD, 'client/stream-client.ts'),
  watched: [
    DASHBOARD,
    UI,
    join(ROOT, 'src/contract'),
    join(ROOT, 'package-lock.json'),
    join(ROOT, 'src/processes/compose/services/page-bundle.ts'),
  ],
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
export async function openPage({ target = TARGET, names = new Map(), log }: PageOptions = {}): Promise<OpenedPage> {
  try {
    const { folder, built } =
      PACKAGED === undefined ? await buildPage(SOURCES, target) : { folder: PACKAGED, built: false }
    const files = new Map([
      ...(await readPageFiles(folder, '/page/')),
      [NAMES_PATH, namesFile(names)],
      ...descriptions(),
    ])
    return { page: (path) => files.get(path), files: [...files.values()], built }
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
