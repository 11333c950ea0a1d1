/** ASCII characters by their codes, and two entries for all others: white space and the rest. */
export type CharSet = ReadonlySet<number>
const OTHER_BLANKS = 128
const OTHERS = 129

/** Nodes of a regular expression. Anchors and lookarounds consume no characters; lookarounds have their pattern. */
export type RegexNode =
  | { readonly kind: 'set'; readonly set: CharSet }
  | { readonly kind: 'group'; readonly alternatives: readonly RegexSequence[] }
  | { readonly kind: 'look'; readonly alternatives: readonly RegexSequence[] }
  | { readonly kind: 'start' }
  | { readonly kind: 'end' }
  | { readonly kind: 'boundary' }
export type RegexItem = { readonly node: RegexNode; readonly min: number; readonly max: number }
export type RegexSequence = readonly RegexItem[]
export type Regex = { readonly alternatives: readonly RegexSequence[]; readonly flags: string }

const ALL: CharSet = new Set(Array.from({ length: OTHERS + 1 }, (_, code) => code))
const range = (from: string, to: string): number[] =>
  Array.from({ length: to.charCodeAt(0) - from.charCodeAt(0) + 1 }, (_, at) => from.charCodeAt(0) + at)
const DIGITS: CharSet = new Set(range('0', '9'))
const WORDS: CharSet = new Set([...DIGITS, ...range('A', 'Z'), ...range('a', 'z'), 95])
const SPACES: CharSet = new Set([9, 10, 11, 12, 13, 32, OTHER_BLANKS])
const CLASSES: Readonly<Record<string, CharSet>> = {
  d: DIGITS,
  D: not(DIGITS),
  w: WORDS,
  W: not(WORDS),
  s: SPACES,
  S: not(SPACES),
}
const CONTROL: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, f: 12, v: 11, 0: 0 }

function not(set: CharSet): CharSet {
  const outside = new Set([...ALL].filter((code) => !set.has(code)))
  // Outside ASCII a set contains few characters, and a negated set most of them.
  outside.add(OTHERS)
  if (![...SPACES].every((code) => set.has(code))) outside.add(OTHER_BLANKS)
  return outside
}

/** Parses a regular expression as written in the source. Throws for unsupported syntax, so that nothing is skipped. */
export function parseRegex(literal: string): Regex {
  const end = literal.lastIndexOf('/')
  const [source, flags] = [literal.slice(1, end), literal.slice(end + 1)]
  let at = 0

  const alternatives = readAlternatives()
  if (at !== source.length) throw new Error(`${literal}: cannot be read from ${at}`)
  return { alternatives, flags }

  function readAlternatives(): RegexSequence[] {
    const found: RegexItem[][] = [[]]
    while (at < source.length && source[at] !== ')') {
      if (source[at] === '|') {
        at++
        found.push([])
      } else (found.at(-1) as RegexItem[]).push(readItem())
    }
    return found
  }

  function readItem(): RegexItem {
    const node = readNode()
    const [min, max] = readQuantifier()
    return { node, min, max }
  }

  function readQuantifier(): [min: number, max: number] {
    const rest = source.slice(at)
    const counted = /^\{(\d+)(,?)(\d*)\}/.exec(rest)
    const simple = { '*': [0, Infinity], '+': [1, Infinity], '?': [0, 1] }[rest[0] ?? '']
    if (counted === null && simple === undefined) return [1, 1]
    at += counted === null ? 1 : counted[0].length
    if (source[at] === '?') at++
    if (counted === null) return simple as [number, number]
    const min = Number(counted[1])
    return [min, counted[2] === '' ? min : counted[3] === '' ? Infinity : Number(counted[3])]
  }

  function readNode(): RegexNode {
    const char = source[at++] as string
    if (char === '^') return { kind: 'start' }
    if (char === '$') return { kind: 'end' }
    if (char === '(') return readGroup()
    if (char === '[') return { kind: 'set', set: readClass() }
    if (char === '.') return { kind: 'set', set: flags.includes('s') ? ALL : not(new Set([10, 13])) }
    if (char !== '\\') return { kind: 'set', set: folded(new Set([code(char)])) }
    const escaped = source[at++] as string
    if (escaped === 'b' || escaped === 'B') return { kind: 'boundary' }
    return { kind: 'set', set: folded(readEscape(escaped)) }
  }

  function readGroup(): RegexNode {
    const kind = /^\?(?::|<?[=!])/.exec(source.slice(at))?.[0] ?? ''
    if (kind === '' && source[at] === '?') throw new Error(`${literal}: a group of an unknown kind`)
    at += kind.length
    const inside = readAlternatives()
    at++
    // A lookahead consumes nothing, and a lookbehind has a fixed length.
    return { kind: kind === '' || kind === '?:' ? 'group' : 'look', alternatives: inside }
  }

  function readEscape(escaped: string): CharSet {
    if (escaped in CLASSES) return CLASSES[escaped] as CharSet
    if (escaped === 'p' || escaped === 'P') {
      at = source.indexOf('}', at) + 1
      return new Set([OTHER_BLANKS, OTHERS])
    }
    if (escaped === 'x' || escaped === 'u') {
      const digits = source.slice(at, at + (escaped === 'x' ? 2 : 4))
      at += digits.length
      return new Set([positionOf(Number.parseInt(digits, 16))])
    }
    return new Set([CONTROL[escaped] ?? code(escaped)])
  }

  function readClass(): CharSet {
    const isNot = source[at] === '^'
    if (isNot) at++
    const set = new Set<number>()
    while (source[at] !== ']') {
      const from = readClassMember()
      if (source[at] === '-' && source[at + 1] !== ']' && from.size === 1) {
        at++
        const [low] = from as Set<number>
        const [high] = readClassMember() as Set<number>
        for (let each = low as number; each <= (high as number); each++) set.add(each)
      } else for (const each of from) set.add(each)
    }
    at++
    return isNot ? not(folded(set)) : folded(set)
  }

  function readClassMember(): CharSet {
    const char = source[at++] as string
    return char === '\\' ? readEscape(source[at++] as string) : new Set([code(char)])
  }

  function folded(set: CharSet): CharSet {
    if (!flags.includes('i')) return set
    const texts = [...set].filter((each) => each < OTHER_BLANKS).map((each) => String.fromCharCode(each))
    return new Set([...set, ...texts.flatMap((text) => [code(text.toLowerCase()), code(text.toUpperCase())])])
  }
}

function code(char: string): number {
  return positionOf(char.charCodeAt(0))
}

function positionOf(character: number): number {
  if (character < OTHER_BLANKS) return character
  return /\s/.test(String.fromCharCode(character)) ? OTHER_BLANKS : OTHERS
}
