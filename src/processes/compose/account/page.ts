import { join } from 'node:path'
import type { Logger } from '../../../platform/telemetry/logger.ts'
import { buildPage, type PageFile, type PageSources, readPageFiles } from '../services/page-bundle.ts'

const ROOT = join(import.meta.dirname, '../../../..')
const CONSOLE = join(ROOT, 'src/console')
const UI = join(ROOT, 'src/ui')
const TARGET = join(ROOT, 'dist/account')
/** The published package contains the built page instead of its source. */
const PACKAGED = import.meta.url.endsWith('.js') ? join(ROOT, 'account') : undefined
const SOURCES: PageSources = {
  folder: join(CONSOLE, 'account/page'),
  icon: join(UI, 'icon.svg'),
  script: join(CONSOLE, 'account/page/main.tsx'),
  first: join(UI, 'theme-first.ts'),
  watched: [
    CONSOLE,
    UI,
    join(ROOT, 'src/contract'),
    join(ROOT, 'package-lock.json'),
    join(ROOT, 'src/processes/compose/services/page-bundle.ts'),
  ],
}

export type OpenedAccountPage = {
  readonly files: readonly PageFile[]
  /** False if an existing build was up to date. */
  readonly built: boolean
}

/** The account page in memory, rebuilt if its sources changed: itself at `/`, its files under `/account/`. */
export async function openAccountPage({
  target = TARGET,
}: {
  readonly target?: string
} = {}): Promise<OpenedAccountPage> {
  const { folder, built } =
    PACKAGED === undefined ? await buildPage(SOURCES, target) : { folder: PACKAGED, built: false }
  return { files: [...(await readPageFiles(folder, '/account/')).values()], built }
}

/** The page at `/account`. Opens it when a thread first asks for it; without it the gateway serves everything else. */
export function accountPageMethods(log: Logger, open = openAccountPage) {
  let files: Promise<readonly PageFile[]> | undefined
  return {
    'account-page': () => {
      files ??= open().then(
        (opened) => opened.files.map((file) => (file.path === '/' ? { ...file, path: '/account' } : file)),
        (err: unknown) => {
          log.warn({ err }, 'the account page cannot be built, the gateway runs without it')
          return []
        },
      )
      return files
    },
  }
}
