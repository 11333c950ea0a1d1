import type { Logger } from '../../../platform/telemetry/logger.ts'
import type { PageFile } from './bundle.ts'
import { openPageFiles, type PageDefinition } from './files.ts'

const ACCOUNT_PAGE: PageDefinition = {
  module: 'account-page',
  document: {
    title: 'Sluice · your account',
    meta: { name: 'robots', content: 'noindex' },
    withoutScript:
      'This page needs JavaScript. Without it: GET /v1/account and /v1/usage, with your token in the header x-token.',
    base: 'account',
  },
}

export type OpenedAccountPage = {
  readonly files: readonly PageFile[]
  /** False if an existing build was up to date. */
  readonly built: boolean
}

/** The account page in memory, rebuilt if its sources changed: itself at `/`, its files under `/account/`. */
export async function openAccountPage({ target }: { readonly target?: string } = {}): Promise<OpenedAccountPage> {
  const { files, built } = await openPageFiles(ACCOUNT_PAGE, target)
  return { files: [...files.values()], built }
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
