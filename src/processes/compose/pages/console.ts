import type { Logger } from '../../../platform/telemetry/logger.ts'
import type { PageFile } from './bundle.ts'
import { openPageFiles, type PageDefinition } from './files.ts'

const CONSOLE: PageDefinition = {
  module: 'console',
  document: {
    title: 'Sluice · console',
    meta: { name: 'robots', content: 'noindex' },
    withoutScript: 'The console needs JavaScript. The same is possible with the command line: sluice --help.',
    base: 'console',
  },
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
export async function openConsole({ target, log }: ConsoleOptions = {}): Promise<OpenedConsole> {
  try {
    const { files, built } = await openPageFiles(CONSOLE, target)
    return { page: (path) => files.get(path), files: [...files.values()], built }
  } catch (err) {
    if (log === undefined) throw err
    log.warn({ err }, 'the console cannot be built, the admin API runs without it')
    return { page: () => undefined, files: [], built: false }
  }
}
