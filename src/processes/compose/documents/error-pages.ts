import type { DocumentSource, MarkdownPage } from './document-sources.ts'

const ERRORS_PATH = 'docs/errors.md'

/** One page for each error and for each reason of a refused token, from the sections and the table of docs/errors.md. */
export function* errorPages(sources: readonly DocumentSource[]): Generator<MarkdownPage> {
  const text = sources.find(({ path }) => path === ERRORS_PATH)?.text ?? ''
  const [, ...sections] = text.split(/^## /m)
  for (const section of sections) {
    const [code = '', ...lines] = section.split('\n')
    // Codes have no spaces; other sections are not errors.
    if (/^[a-z-]+$/.test(code)) {
      const more =
        code === 'unauthorized'
          ? '\n\nThe causes, by `data.reason`: [why a token is refused](errors.md#why-a-token-is-refused).'
          : ''
      yield page(code, `${lines.join('\n').trim()}${more}`)
    } else if (code === 'Why a token is refused') yield* reasonPages(lines)
  }
}

function* reasonPages(lines: readonly string[]): Generator<MarkdownPage> {
  for (const line of lines) {
    const [, reason, meaning] = /^\| `([a-z-]+)` \| (.*) \|$/.exec(line) ?? []
    if (reason === undefined) continue
    yield page(
      reason,
      `The token is refused: ${meaning}.\n\nThe error is \`unauthorized\` with \`data.reason\`: \`${reason}\`. See [unauthorized](errors.md#unauthorized) and [all reasons](errors.md#why-a-token-is-refused).`,
    )
  }
}

function page(name: string, text: string): MarkdownPage {
  const all = '\n\nAll errors: [errors](errors.md).\n'
  return { url: `/docs/errors/${name}`, path: ERRORS_PATH, text: `# ${name}\n\n${text}${all}` }
}
