import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { canonicalJson } from './canonical-json.ts'

const canonical = (text: string, depthMax = 32) => canonicalJson(text, depthMax)

/** A value as written, with everything parsers may disagree about: members in order, numbers as written. */
type Exact =
  | string
  | { readonly text: string }
  | readonly Exact[]
  | { readonly members: readonly (readonly [string, Exact])[] }

/** A second, independent reader of JSON, strict and slow; only for text that is well-formed. */
function readExact(text: string): Exact {
  let at = 0
  const space = () => {
    while (at < text.length && ' \n\r\t'.includes(text[at] as string)) at += 1
  }
  const token = (pattern: RegExp): string => {
    const match = new RegExp(pattern.source, 'y')
    match.lastIndex = at
    const found = match.exec(text)?.[0]
    assert.ok(found !== undefined, `${pattern} at ${at} of ${text}`)
    at += found.length
    return found
  }
  const string = (): string => JSON.parse(token(/"(?:[^"\\]|\\.)*"/)) as string
  const list = <Item>(close: string, item: () => Item): Item[] => {
    const items: Item[] = []
    at += 1
    space()
    while (text[at] !== close) {
      items.push(item())
      space()
      if (text[at] === ',') at += 1
      space()
    }
    at += 1
    return items
  }
  function value(): Exact {
    space()
    if (text[at] === '"') return string()
    if (text[at] === '[') return list(']', value)
    if (text[at] !== '{') return { text: token(/[-+.\w]+/) }
    const members = list('}', () => {
      const name = string()
      space()
      at += 1
      return [name, value()] as const
    })
    return { members }
  }
  return value()
}

/** What every parser makes of a value: undefined where a duplicate member leaves it to the parser. */
function meaning(value: Exact): unknown {
  if (typeof value === 'string') return `string ${value}`
  if (Array.isArray(value)) return value.map(meaning)
  if ('text' in value) return `token ${value.text}`
  const { members } = value as { members: readonly (readonly [string, Exact])[] }
  const byName = new Map(members.map(([name, member]) => [name, meaning(member)]))
  return { object: [...byName].toSorted(([a], [b]) => (a < b ? -1 : 1)) }
}

function hasDuplicate(value: Exact): boolean {
  if (typeof value === 'string') return false
  if (Array.isArray(value)) return value.some(hasDuplicate)
  if ('text' in value) return false
  const { members } = value as { members: readonly (readonly [string, Exact])[] }
  const names = members.map(([name]) => name)
  return new Set(names).size !== names.length || members.some(([, member]) => hasDuplicate(member))
}

const space = fc.constantFrom('', '', ' ', '\n\t')
/** Few characters, so that equal values in different spelling come up often. */
const letter = fc.constantFrom(
  'a',
  '\\u0061',
  'é',
  '\\u00e9',
  '/',
  '\\/',
  '\\n',
  '\\u000A',
  '\\"',
  '\\ud83d\\ude00',
  '😀',
)
const stringText = fc.oneof(
  fc.constantFrom('"__proto__"', '"constructor"', '"\\u005f_proto__"', '"1"', '"0"'),
  fc.array(letter, { maxLength: 2 }).map((letters) => `"${letters.join('')}"`),
)
const numberText = fc.constantFrom(
  ...['0', '-0', '1', '1.0', '1e0', '0.1e1', '10', '1E1', '1e+1', '12345678901234567890', '12345678901234567891'],
)
const { value: jsonText } = fc.letrec<{ value: string; array: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    stringText,
    numberText,
    fc.constantFrom('true', 'false', 'null'),
    tie('array'),
    tie('object'),
  ),
  array: fc
    .tuple(fc.array(fc.tuple(space, tie('value')), { maxLength: 3 }), space)
    .map(([items, end]) => `[${items.map((item) => item.join('')).join(',')}${end}]`),
  object: fc
    .array(fc.tuple(space, stringText, space, tie('value')), { maxLength: 3 })
    .map(
      (members) =>
        `{${members.map(([before, name, between, value]) => `${before}${name}${between}:${value}`).join(',')}}`,
    ),
}))

describe('canonicalJson', () => {
  it('gives texts that every parser reads alike one form', () => {
    const table: [string, string][] = [
      [' [ 1 , "a" ] ', '[1,"a"]'],
      ['["\\u0061\\/\\u00e9\\ud83d\\ude00\\u000a"]', '["a/é😀\\n"]'],
      ['{"b":1,"\\u0061":{"d":[],"c":null}}', '{"a":{"c":null,"d":[]},"b":1}'],
      ['{"__proto__":{"x":1}}', '{"__proto__":{"x":1}}'],
      ['{"10":1,"9":2}', '{"10":1,"9":2}'],
      ['[true,false,null,{}]', '[true,false,null,{}]'],
    ]
    for (const [text, expected] of table) assert.equal(canonical(text), expected, text)
  })

  it('keeps numbers as written, so that different spellings stay different', () => {
    const numbers = ['1', '1.0', '1e0', '0.1e1', '0', '-0', '12345678901234567890', '12345678901234567891']
    assert.deepEqual(
      numbers.map((number) => canonical(`[${number}]`)),
      numbers.map((number) => `[${number}]`),
    )
  })

  it('has no form for duplicate members at any depth, names compared as read', () => {
    for (const text of [
      '{"a":1,"a":1}',
      '[{"a":1,"\\u0061":2}]',
      '["k",{"x":[{"y":{"c":1,"d":2,"c":3}}]}]',
      '{"__proto__":1,"__proto__":2}',
      '{"":1,"":2}',
    ]) {
      assert.equal(canonical(text), undefined, text)
    }
    assert.equal(canonical('[{"a":1},{"a":1}]'), '[{"a":1},{"a":1}]')
  })

  it('has no form for what is not JSON or nested too deep', () => {
    for (const text of ['', '[', '[1]]', '["\\ud800"]', '[01]', '[1]//', '\ufeff[]'])
      assert.equal(canonical(text), undefined, text)
    const nested = (depth: number) => `${'[{"a":'.repeat(depth / 2)}1${'}]'.repeat(depth / 2)}`
    assert.equal(canonical(nested(32)), nested(32))
    assert.equal(canonical(nested(34)), undefined)
  })

  it('is a fixed point, is equal only for equal values, and exists exactly where no member is duplicate', (t) => {
    const property = fc.property(jsonText, jsonText, (a, b) => {
      const [formA, formB] = [canonical(a), canonical(b)]
      assert.equal(formA === undefined, hasDuplicate(readExact(a)), a)
      if (formA === undefined) return
      assert.equal(canonical(formA), formA)
      assert.deepEqual(meaning(readExact(formA)), meaning(readExact(a)), a)
      const isSame = JSON.stringify(meaning(readExact(a))) === JSON.stringify(meaning(readExact(b)))
      if (formB !== undefined) assert.equal(formA === formB, isSame, `${a} and ${b}`)
    })
    checkProperty(t, property, 3000, 200_000)
  })

  it('takes time linear in the length of the text', () => {
    const members = Array.from({ length: 100_000 }, (_, at) => `"k${at}":[${at}]`)
    const startedMs = performance.now()
    assert.ok(canonical(`{${members.join(',')}}`))
    // About 100 ms for 1.8 MB; a message on 8900 has at most 4096 bytes.
    assert.ok(performance.now() - startedMs < 5000)
  })
})
