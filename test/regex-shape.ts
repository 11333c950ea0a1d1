import {
  type CharSet,
  parseRegex,
  type Regex,
  type RegexItem,
  type RegexNode,
  type RegexSequence,
} from './regex-parse.ts'

/**
 * Why a regular expression may take more time than its input is long, or undefined. Decided by its shape alone, on the safe side: three shapes of
 * repetition can be entered at many places of the same run of characters.
 */
export function findSlowShape(literal: string): string | undefined {
  const regex = parseRegex(literal)
  return findNested(regex) ?? findAdjacent(regex) ?? findRestart(regex)
}

/** `(a+)+`: a repetition inside another, without a character that separates their iterations. */
function findNested({ alternatives }: Regex): string | undefined {
  for (const sequence of alternatives) {
    for (const [at, item] of sequence.entries()) {
      if (!('alternatives' in item.node)) continue
      const inner = findNested({ alternatives: item.node.alternatives, flags: '' })
      if (inner !== undefined) return inner
      if (item.max < Infinity || !canFail(sequence.slice(at + 1))) continue
      if (item.node.alternatives.some(isUndelimited)) return 'a repetition inside of a repetition'
      if (haveSameStart(item.node.alternatives)) return 'a repetition of alternatives that begin alike'
    }
  }
  return undefined
}

/** Whether its inner repetitions can continue in the next iteration: no mandatory character of each iteration ends them. */
function isUndelimited(turn: RegexSequence): boolean {
  const repeated = [...itemsIn(turn)].filter(({ max }) => max === Infinity).map(({ node }) => setOf(node))
  if (repeated.length === 0) return false
  const isDelimiter = (item: RegexItem): boolean =>
    item.min > 0 && item.max < Infinity && repeated.every((set) => !overlap(set, setOf(item.node)))
  return !turn.some(isDelimiter)
}

function haveSameStart(turns: readonly RegexSequence[]): boolean {
  const starts = turns.map((turn) => (turn[0] === undefined ? new Set<number>() : setOf(turn[0].node)))
  return starts.some((start, at) => starts.slice(at + 1).some((other) => overlap(start, other)))
}

/** `\s*\s*`, `\s*[^}]*`: two repetitions of the same characters, with nothing mandatory between them. */
function findAdjacent({ alternatives }: Regex): string | undefined {
  for (const sequence of alternatives) {
    const flat = flatten(sequence)
    for (const [at, item] of flat.entries()) {
      if (item.max < Infinity) continue
      for (const next of flat.slice(at + 1)) {
        if (next.max === Infinity && overlap(edgeOf(item.node, 'last'), edgeOf(next.node, 'first')))
          return 'two repetitions of the same characters side by side'
        if (next.min > 0) break
      }
    }
    for (const { node } of itemsIn(sequence)) {
      if ('alternatives' in node) {
        const inner = findAdjacent({ alternatives: node.alternatives, flags: '' })
        if (inner !== undefined) return inner
      }
    }
  }
  return undefined
}

/** `\s+$` without `^`: from each position of a run of characters it reads the rest of the run. */
function findRestart({ alternatives, flags }: Regex): string | undefined {
  if (flags.includes('y')) return undefined
  for (const sequence of alternatives) {
    if (sequence[0]?.node.kind === 'start') continue
    const flat = flatten(sequence)
    for (const [at, item] of flat.entries()) {
      if (item.max < Infinity || !canFail(flat.slice(at + 1))) continue
      const before = flat.slice(0, at).filter(({ min, node }) => min > 0 && setOf(node).size > 0)
      if (before.every(({ node }) => overlap(setOf(node), setOf(item.node))))
        return 'a repetition that is begun at each place of the same run of characters'
    }
  }
  return undefined
}

/** Inlines single groups, and replaces repeated groups by their content, so that adjacent nodes are adjacent. */
function flatten(sequence: RegexSequence): RegexItem[] {
  return sequence.flatMap((item) => {
    if (!('alternatives' in item.node)) return [item]
    const [only, ...others] = item.node.alternatives
    if (only !== undefined && others.length === 0 && item.min === 1 && item.max === 1) return flatten(only)
    if (item.node.kind === 'look' && only !== undefined) return flatten(only).map((each) => ({ ...each, min: 0 }))
    return [item]
  })
}

function* itemsIn(sequence: RegexSequence): Generator<RegexItem> {
  for (const item of sequence) {
    yield item
    if ('alternatives' in item.node) for (const inner of item.node.alternatives) yield* itemsIn(inner)
  }
}

/** Whether something must still match after this. */
function canFail(rest: readonly RegexItem[]): boolean {
  return rest.some(({ node, min }) => node.kind === 'end' || node.kind === 'look' || (min > 0 && setOf(node).size > 0))
}

/** The characters that may be at one of its ends. */
function edgeOf(node: RegexNode, end: 'first' | 'last'): CharSet {
  if (!('alternatives' in node)) return setOf(node)
  const found = new Set<number>()
  for (const sequence of node.alternatives) {
    for (const item of end === 'first' ? sequence : sequence.toReversed()) {
      for (const each of edgeOf(item.node, end)) found.add(each)
      if (item.min > 0) break
    }
  }
  return found
}

/** All characters that may occur in it. */
function setOf(node: RegexNode): CharSet {
  if (node.kind === 'set') return node.set
  if (!('alternatives' in node) || node.kind === 'look') return new Set()
  return new Set(node.alternatives.flatMap((sequence) => sequence.flatMap((item) => [...setOf(item.node)])))
}

function overlap(one: CharSet, other: CharSet): boolean {
  return [...one].some((each) => other.has(each))
}
