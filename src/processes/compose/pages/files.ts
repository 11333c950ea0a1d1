import { join } from 'node:path'
import { buildPage, type PageDocument, type PageFile, type PageSources, readPageFiles } from './bundle.ts'

const ROOT = join(import.meta.dirname, '../../../..')
const UI = join(ROOT, 'src/ui')
/** The published package contains the built pages instead of their sources. */
const IS_PACKAGED = import.meta.url.endsWith('.js')

export type PageDefinition = {
  /** Its module in `src/`, with `page/main.tsx` and `page/page.css`. */
  readonly module: string
  readonly document: PageDocument
  /** The client library in the module, if the page serves one. */
  readonly client?: string
}

export type OpenedFiles = {
  /** By path: the page itself at `/`, everything else under its base. */
  readonly files: ReadonlyMap<string, PageFile>
  /** False if an existing build was up to date. */
  readonly built: boolean
}

/** The files of a page in memory, rebuilt in a folder of `target` if their sources changed. */
export async function openPageFiles(page: PageDefinition, target?: string): Promise<OpenedFiles> {
  const { base } = page.document
  const { folder, built } = IS_PACKAGED
    ? { folder: join(ROOT, base), built: false }
    : await buildPage(sourcesOf(page), target ?? join(ROOT, 'dist', base))
  return { files: await readPageFiles(folder, `/${base}/`), built }
}

function sourcesOf({ module, document, client }: PageDefinition): PageSources {
  const source = join(ROOT, 'src', module)
  return {
    folder: join(source, 'page'),
    script: join(source, 'page/main.tsx'),
    template: join(UI, 'page/index.html'),
    icon: join(UI, 'icon.svg'),
    first: join(UI, 'theme-first.ts'),
    document,
    ...(client === undefined ? {} : { client: join(source, client) }),
    watched: [
      source,
      UI,
      join(ROOT, 'src/contract'),
      join(ROOT, 'package-lock.json'),
      // The build itself, and what differs in the documents.
      import.meta.dirname,
    ],
  }
}
