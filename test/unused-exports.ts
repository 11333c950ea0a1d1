import { posix } from 'node:path'
import { readSource } from './read-source.ts'

const EXPORT = /^export (?:async )?(type|interface|function\*?|const|let|class) (\w+)/gm
const NAMED = /^(?:import|export) (?:type )?\{([^}]*)\} from '(\.[^']*)'/gm
/** A namespace or dynamic import: which exports it uses is not analysed. */
const WHOLE = /^import \* as \w+ from '(\.[^']*)'|\bimport\(\s*'(\.[^']*)'/gm

/**
 * Exports of `src` that no other file imports. A type may be exported when its own file uses it, since values of it leave the file; its name in a
 * comment is no use. The files are given as text (path to content) in the formatter's style.
 */
export function findUnusedExports(files: ReadonlyMap<string, string>): string[] {
  const used = new Set<string>()
  for (const [path, text] of files) {
    const resolve = (specifier = ''): string => posix.join(posix.dirname(path), specifier)
    for (const [, names = '', specifier] of text.matchAll(NAMED)) {
      for (const name of names.matchAll(/(?:^|,)\s*(?:type )?(\w+)/g)) used.add(`${resolve(specifier)} ${name[1]}`)
    }
    for (const [, all, lazy] of text.matchAll(WHOLE)) used.add(resolve(all ?? lazy))
  }
  const source = new Map([...files].filter(([path]) => path.startsWith('src/')))
  const names = new Map(readSource(source).map((facts) => [facts.path, facts.names]))
  const unused: string[] = []
  for (const [path, text] of source) {
    if (used.has(path)) continue
    for (const [, kind = '', name = ''] of text.matchAll(EXPORT)) {
      if (used.has(`${path} ${name}`)) continue
      const isType = kind === 'type' || kind === 'interface'
      if (isType && (names.get(path)?.get(name)?.count ?? 0) > 1) continue
      unused.push(`${path}: ${name}`)
    }
  }
  return unused
}
