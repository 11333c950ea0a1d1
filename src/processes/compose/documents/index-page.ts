import type { DocumentSource } from './document-sources.ts'

const GROUPS: readonly { readonly title: string; readonly paths: RegExp }[] = [
  { title: 'For customers', paths: /^(docs\/customers\/|examples\/README\.md$)/ },
  { title: 'Reference', paths: /^docs\/(api|errors|guarantees|schema|shreds)\.md$/ },
  { title: 'API descriptions', paths: /^docs\/(openapi|asyncapi)\// },
  { title: 'gRPC', paths: /^proto\// },
  { title: 'For the operator', paths: /\.md$/ },
]

/** The index of all documents, as Markdown. */
export function indexPage(sources: readonly DocumentSource[], titleOf: (text: string) => string): string {
  const open = sources.filter(({ path }) => /\.(md|json|proto)$/.test(path))
  const taken = new Set<string>()
  const sections = GROUPS.map(({ title, paths }) => {
    const own = open.filter(({ path }) => !taken.has(path) && paths.test(path)).toSorted(readmeFirst)
    for (const { path } of own) taken.add(path)
    const lines = own.map(({ path, text }) => `- [${path.endsWith('.md') ? titleOf(text) : nameOf(path)}](${path})`)
    if (title === 'gRPC') lines.push('- [all proto files in one archive](proto.tar.gz)')
    return `## ${title}\n\n${lines.join('\n')}`
  })
  return [
    '# Documents',
    'The documents of this service. Each page is also served as Markdown, with `.md` at the end of its address.',
    ...sections,
  ].join('\n\n')
}

function nameOf(path: string): string {
  return path.replace(/^docs\//, '')
}

function readmeFirst(a: DocumentSource, b: DocumentSource): number {
  return Number(b.path.endsWith('README.md')) - Number(a.path.endsWith('README.md')) || (a.path < b.path ? -1 : 1)
}
