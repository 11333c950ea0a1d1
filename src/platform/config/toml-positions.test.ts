import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parse, stringify } from 'smol-toml'
import { seedFor } from '../../core/test-seed.ts'
import { findKeyPositions, findRepeated, type KeyPath, pathKey } from './toml-positions.ts'

const TEXT = `# comment with key = 1
title = "a # b"  # not a comment inside
"quoted key" = 'x'
dotted.inner."deep one" = true

[bundle]
port = 8899
  indented = [1, { a = 1, "b c" = [2, 3] }, # comment
    3]
inline = { x = 1, y.z = "}" }
long = """
fake = 1
[fake]
\\"""" # ends in a quote of its own
tail = """a"""""
raw = '''
[fake2]
'''

[bundle.ws]
queryToken = false
[[plans]]
name = "one"
[[plans]]
name = "two"
[plans.limits]
rate = 5
[[plans.extra]]
k = 1
`

function at(text: string, path: KeyPath): string | undefined {
  const position = findKeyPositions(text).get(pathKey(path))
  if (!position) return undefined
  return `${position.line}:${position.column} ${text.split('\n')[position.line - 1]?.slice(position.column - 1)}`
}

test('finds the position of a key in every syntax', () => {
  parse(TEXT)
  const cases: [KeyPath, string][] = [
    [['title'], '2:1 title'],
    [['quoted key'], '3:1 "quoted key"'],
    [['dotted', 'inner', 'deep one'], '4:1 dotted'],
    [['bundle'], '6:2 bundle'],
    [['bundle', 'port'], '7:1 port'],
    [['bundle', 'indented', 1, 'a'], '8:20 a = 1'],
    [['bundle', 'indented', 1, 'b c', 1], '8:39 3'],
    [['bundle', 'indented', 2], '9:5 3'],
    [['bundle', 'inline', 'y', 'z'], '10:19 y.z'],
    [['bundle', 'long'], '11:1 long'],
    [['bundle', 'tail'], '15:1 tail'],
    [['bundle', 'raw'], '16:1 raw'],
    [['bundle', 'ws', 'queryToken'], '21:1 queryToken'],
    [['plans', 0, 'name'], '23:1 name = "one"'],
    [['plans', 1, 'name'], '25:1 name = "two"'],
    [['plans', 1, 'limits', 'rate'], '27:1 rate'],
    [['plans', 1, 'extra', 0, 'k'], '29:1 k'],
  ]
  for (const [path, start] of cases) assert(at(TEXT, path)?.startsWith(start), `${pathKey(path)}: ${at(TEXT, path)}`)
  for (const path of [['fake'], ['fake2'], ['key'], ['bundle', 'fake']]) assert.equal(at(TEXT, path), undefined)
})

test('finds every key of any table, at a position where it is written', () => {
  const key = fc.oneof(fc.stringMatching(/^[a-zA-Z0-9_-]{1,6}$/), fc.string({ minLength: 1, maxLength: 5 }))
  const { table } = fc.letrec((tie) => ({
    table: fc.dictionary(key, tie('value'), { maxKeys: 4 }),
    value: fc.oneof(
      { depthSize: 'small' },
      fc.integer(),
      fc.string(),
      fc.boolean(),
      fc.array(fc.string(), { maxLength: 3 }),
      fc.array(tie('table'), { maxLength: 3 }),
      tie('table'),
    ),
  }))
  fc.assert(
    fc.property(table, (value) => {
      const text = stringify(value as Record<string, unknown>)
      const positions = findKeyPositions(text)
      const lines = text.split('\n')
      for (const { path, last } of keysIn(parse(text))) {
        const position = positions.get(pathKey(path))
        assert(position, `${pathKey(path)} is not found in\n${text}`)
        const rest = lines[position.line - 1]?.slice(position.column - 1) ?? ''
        if (/^[\w-]+$/.test(last)) assert(rest.includes(last), `${pathKey(path)} is not at ${rest}`)
      }
    }),
    seedFor('toml-positions', 300),
  )
})

test('reads escapes in keys as the parser does, and an escaped backslash is not an escape', () => {
  const keys = ['\\\\e', '\\e', '\\\\\\e', '\\U0001F600', '\\\\U0001F600', '\\x41', '\\\\x41', '\\"\\\\', '\\u0041']
  for (const key of keys) {
    const text = `"${key}" = 1`
    const [read] = Object.keys(parse(text))
    assert.deepEqual([...findKeyPositions(text).keys()], [pathKey([read as string])], key)
  }
})

test('the walk ends also for a text that is not TOML', () => {
  fc.assert(
    fc.property(
      fc.string({
        unit: fc.constantFrom('[', ']', '{', '}', '=', '"', "'", '\\', '.', ',', '#', '\n', 'a', ' '),
        maxLength: 60,
      }),
      (text) => {
        findKeyPositions(text)
      },
    ),
    seedFor('toml-hostile', 2000),
  )
})

function* keysIn(value: unknown, path: KeyPath = []): Generator<{ path: KeyPath; last: string }> {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* keysIn(item, [...path, index])
  } else if (typeof value === 'object' && value !== null && !(value instanceof Date)) {
    for (const [key, item] of Object.entries(value)) {
      yield { path: [...path, key], last: key }
      yield* keysIn(item, [...path, key])
    }
  }
}

test('a byte order mark changes no position', () => {
  for (const text of [TEXT, '[bundle]\nport = 1\n', 'port = 1\n'])
    assert.deepEqual(findKeyPositions(`\ufeff${text}`), findKeyPositions(text))
})

test('finds the place of a key or table that a line repeats', () => {
  for (const [text, line, first] of [
    ['[bundle]\nx = 1\n[sender]\n[bundle]\n', 4, { line: 1, column: 2 }],
    ['[a.b]\n[a.c]\n  [a.b]', 3, { line: 1, column: 2 }],
    ['[a]\nx = 1\ny = 2\n  x = 3', 4, { line: 2, column: 1 }],
    ['a.x = 1\na.y = 2\na.x = 3', 3, { line: 1, column: 1 }],
    ['[a]\nx = 1\n[b]\nx = 1', 4, undefined],
  ] as const)
    assert.deepEqual(findRepeated(text, line), first, text)
})
