import { posix } from 'node:path'

const EXPORT = /^export (?:async )?(type|interface|function\*?|const|let|class) (\w+)/gm
const NAMED = /^(?:import|export) (?:type )?\{([^}]*)\} from '(\.[^']*)'/gm
/** As a whole, or when the program gets there: what is taken of it is not looked at more closely. */
const WHOLE = /^import \* as \w+ from '(\.[^']*)'|\bimport\(\s*'(\.[^']*)'/gm

/**
 * Exports of `src` that nothing outside their own file imports; a type may be exported for what is made of it, as long as its own file uses it. The files
 * are given as text (path to content). It counts on the formatter's way to write imports.
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
  const unused: string[] = []
  for (const [path, text] of files) {
    if (!path.startsWith('src/') || used.has(path)) continue
    for (const [, kind = '', name = ''] of text.matchAll(EXPORT)) {
      if (used.has(`${path} ${name}`)) continue
      const isType = kind === 'type' || kind === 'interface'
      if (isType && (text.match(new RegExp(`\\b${name}\\b`, 'g')) ?? []).length > 1) continue
      unused.push(`${path}: ${name}`)
    }
  }
  return unused
}
