/** The test of a LIKE pattern: `%` for any characters, `_` for one, a backslash before one that stands for itself. Linear in each `%`. */
export function likePattern(pattern: string, isCaseSensitive = true): (text: string) => boolean {
  const parts = partsOf(isCaseSensitive ? pattern : pattern.toLowerCase())
  return (text) => matches(isCaseSensitive ? text : text.toLowerCase(), parts)
}

function matches(subject: string, parts: readonly (string | symbol)[]): boolean {
  let [at, part] = [0, 0]
  /** Where to continue with a longer match of the last `%`. */
  let retry: { readonly at: number; readonly part: number } | undefined
  while (at < subject.length) {
    const expected = parts[part]
    if (expected === ANY) retry = { at, part: ++part }
    else if (expected !== undefined && (expected === ONE || expected === subject[at])) {
      at++
      part++
    } else if (retry !== undefined) {
      retry = { at: retry.at + 1, part: retry.part }
      ;({ at, part } = retry)
    } else return false
  }
  while (parts[part] === ANY) part++
  return part === parts.length
}

const ANY = Symbol('any characters')
const ONE = Symbol('one character')

function partsOf(pattern: string): readonly (string | symbol)[] {
  const parts: (string | symbol)[] = []
  for (let at = 0; at < pattern.length; at++) {
    const char = pattern[at] as string
    if (char === '%') {
      if (parts.at(-1) !== ANY) parts.push(ANY)
    } else if (char === '_') parts.push(ONE)
    else if (char === '\\' && at + 1 < pattern.length) parts.push(pattern[++at] as string)
    else parts.push(char)
  }
  return parts
}
