import { join } from 'node:path'
import type { Logger } from '../../../platform/telemetry/logger.ts'
import { buildPage, type PageFile, type PageSources, readPageFiles } from './page-bundle.ts'

const ROOT = join(import.meta.dirname, '../../../..')
const CONSOLE = join(ROOT, 'src/console')
const UI = join(ROOT, 'src/ui')
const TARGET = join(ROOT, 'dist/console')
/** The published package contains the built console instead of its source. */
const PACKAGED = import.meta.url.endsWith('.js') ? join(ROOT, 'console') : undefined
const SOURCES: PageSources = {
  folder: join(CONSOLE, 'page'),
  icon: join(UI, 'icon.svg'),
  script: join(CONSOLE, 'page/main.tsx'),
  first: join(UI, 'theme-first.ts'),
  watched: [
    CONSOLE,
    UI,
    join(ROOT, 'src/contract'),
    join(ROOT, 'package-lock.json'),
    join(ROOT, 'src/processes/compose/services/page-bundle.ts'),
  ],
}

export type ConsoleOptions = {
  /** Folder of the built consoles. */
  readonly target?: string
  /** With a log, a failed build is a warning and the admin API runs without the console. */
  readonly log?: Logger
}

export type OpenedConsole = {
  /** The file at a path: the console itself at `/`, its files under `/console/`. */
  readonly page: (path: string) => PageFile | undefined
  readonly files: readonly PageFile[]
  /** False if an existing build was up to date. */
  readonly built: boolean
}

/** The operator's console in memory, rebuilt if its sources changed. */
export async function openConsole({ target = TARGET, log }: ConsoleOptions = {}): Promise<OpenedConsole> {
  try {
    const { folder, built } =
      PACKAGED === undefined ? await buildPage(SOURCES, target) : { folder: PACKAGED, built: false }
    const files = await readPageFiles(folder, '/console/')
    return { page: (path) => files.get(path), files: [...files.values()], built }
  } catch (err) {
    if (log === undefined) throw err
    log.warn({ err }, 'the console cannot be built, the admin API runs without it')
    return { page: () => undefined, files: [], built: false }
  }
}
