import { QueryError } from '../../query/error.ts'

/** Longest pattern of COLUMNS. */
const PATTERN_LENGTH_MAX = 100
/** A comparison takes as long as so many characters. */
const COMPARISON_LENGTH = 16

/**
 * The test of COLUMNS('…'): letters, digits and `_`, alternatives with `|`, `^` and `$` at their ends, and `.*` between parts. Other regular
 * expressions are not offered: they would be matched on this thread.
 */
export function columnPattern(pattern: string, at: number): ColumnPattern {
  const alternatives = pattern.split('|').map((text) => {
    const [isStart, isEnd] = [text.startsWith('^'), text.endsWith('$')]
    const parts = text.slice(isStart ? 1 : 0, isEnd ? -1 : undefined).split('.*')
    if (pattern.length > PATTERN_LENGTH_MAX || parts.some((part) => !/^\w*$/.test(part)))
      throw new QueryError(
        'NOT_IMPLEMENTED',
        `Clause COLUMNS with this pattern is not offered, at position ${at}. Offered: letters, digits, _ and .* between them, ^, $ and |.`,
      )
    return { isStart, isEnd, parts }
  })
  return {
    matches: (name) => alternatives.some((each) => matches(name, each)),
    lengthFor: ({ length }) => (length + COMPARISON_LENGTH) * alternatives.length,
  }
}

type ColumnPattern = {
  matches(name: string): boolean
  /** Characters of the name, for each alternative that is compared with it. */
  lengthFor(name: string): number
}

type Alternative = { readonly isStart: boolean; readonly isEnd: boolean; readonly parts: readonly string[] }

function matches(name: string, { isStart, isEnd, parts }: Alternative): boolean {
  let from = 0
  for (const [at, part] of parts.entries()) {
    const isLast = at === parts.length - 1
    const found = isLast && isEnd ? name.length - part.length : name.indexOf(part, from)
    if (found < from || !name.startsWith(part, found) || (at === 0 && isStart && found !== 0)) return false
    from = found + part.length
  }
  return true
}
