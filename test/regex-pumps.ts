import { parseRegex, type RegexItem, type RegexNode, type RegexSequence } from './regex-parse.ts'

/** Strings with the most work for a regular expression, each a function of its length. */
export type Pump = { readonly name: string; readonly make: (size: number) => string }

/**
 * For each repetition in it: what comes before, then many of its characters, then what spoils the match; and many times the whole. The characters are
 * its own, so that every repetition is entered.
 */
export function pumpsOf(literal: string): Pump[] {
  const { alternatives } = parseRegex(literal)
  const pumps: Pump[] = []
  const add = (before: string, turn: string): void => {
    for (const after of ['', '\0', '\n!', before])
      pumps.push({
        name: JSON.stringify([before, turn, after]).slice(0, 80),
        make: (size) => before + turn.repeat(Math.ceil(size / turn.length)) + after,
      })
  }
  for (const sequence of alternatives) {
    const whole = sampleOf(sequence)
    if (whole !== '') add('', whole)
    for (const [before, item] of repetitionsIn(sequence, '')) {
      for (const turn of samplesOf(item.node)) if (turn !== '') add(before, turn)
    }
  }
  return [...new Map(pumps.map((pump) => [pump.name, pump])).values()]
}

/** Each unbounded repetition, with a text that reaches it. */
function* repetitionsIn(sequence: RegexSequence, lead: string): Generator<[before: string, item: RegexItem]> {
  let before = lead
  for (const item of sequence) {
    if (item.max === Infinity) yield [before, item]
    if ('alternatives' in item.node) for (const inner of item.node.alternatives) yield* repetitionsIn(inner, before)
    before += sampleOf([item])
  }
}

/** The shortest text that it matches, or one close to it. */
function sampleOf(sequence: RegexSequence): string {
  return sequence.map(({ node, min }) => (samplesOf(node)[0] ?? '').repeat(Math.max(min, 0))).join('')
}

/** Some texts for one iteration: the first, a middle and the last character of a set, or each alternative of a group. */
function samplesOf(node: RegexNode): string[] {
  if (node.kind === 'set') {
    const codes = [...node.set].map((code) => (code === 128 ? 0x2028 : code === 129 ? 0xe9 : code))
    const some = [codes[0], codes[Math.floor(codes.length / 2)], codes.at(-1)]
    return [...new Set(some)].flatMap((code) => (code === undefined ? [] : [String.fromCharCode(code)]))
  }
  return node.kind === 'group' ? node.alternatives.map(sampleOf) : ['']
}
