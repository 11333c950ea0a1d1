import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../../../..')
/** Without docs/decisions, which are for developers. */
const PATTERNS = ['docs/*.md', 'docs/customers/*.md', 'docs/openapi/*.json', 'docs/asyncapi/*.json', 'CHANGELOG.md']

/** One page of the shipped documentation. */
export type ShippedDocument = { readonly name: string; readonly path: string; title(): string; text(): string }

/** All pages by name: `operating`, `customers/bundle`, `openapi/execution`. */
export function shippedDocuments(): ShippedDocument[] {
  return globSync(PATTERNS, { cwd: ROOT })
    .toSorted()
    .map((path) => {
      const text = () => readFileSync(join(ROOT, path), 'utf8')
      return {
        name: path.replace(/^docs\//, '').replace(/\.(md|json)$/, ''),
        path: join(ROOT, path),
        text,
        title: () => titleOf(path, text()),
      }
    })
}

function titleOf(path: string, text: string): string {
  if (path.endsWith('.md')) return /^# (.+)$/m.exec(text)?.[1] ?? path
  return (JSON.parse(text) as { info: { title: string } }).info.title
}
