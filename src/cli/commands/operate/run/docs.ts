import { didYouMean } from '../../../../core/did-you-mean.ts'
import { ServiceError } from '../../../../core/error.ts'
import { shippedDocuments } from '../../../../processes/compose/process/shipped-documents.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { alignColumns, printJson } from '../../../output/print.ts'
import { terminalColumns } from '../../../output/terminal.ts'
import { wrapMarkdown } from '../../../output/wrap-markdown.ts'

export type DocsFlags = CommonFlags & { readonly path?: boolean }

export async function docs(this: CliContext, flags: DocsFlags, name?: string): Promise<void> {
  const all = shippedDocuments()
  const { stdout } = this.process
  if (name === undefined) {
    const listed = all.map((document) => ({ name: document.name, title: document.title(), path: document.path }))
    if (flags.json === true) return printJson(this, listed)
    stdout.write(alignColumns(listed.map((document) => [document.name, document.title])))
    return
  }
  const found = all.find((document) => document.name.toLowerCase() === name.toLowerCase())
  if (found === undefined) {
    const near = didYouMean(
      name,
      all.map((document) => document.name),
    )
    throw new ServiceError(
      'not-found',
      `unknown page "${name}"${near === undefined ? '' : `; did you mean ${near}?`}`,
      {
        fix: 'List the pages with: sluice docs',
      },
    )
  }
  const columns = terminalColumns(stdout)
  if (flags.path === true) stdout.write(`${found.path}\n`)
  else if (columns === undefined || !found.path.endsWith('.md')) stdout.write(found.text())
  else stdout.write(wrapMarkdown(found.text(), columns))
}
