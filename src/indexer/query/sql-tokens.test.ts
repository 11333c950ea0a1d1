import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GROWTH_MAX, growthOf } from '../../core/test-growth.ts'
import { QueryError, type QueryErrorName } from './error.ts'
import { isInsert, STATEMENT_LENGTH_MAX, STATEMENT_NESTING_MAX, STATEMENT_TOKENS_MAX, tokenize } from './sql-tokens.ts'

const texts = (sql: string): string[] => tokenize(sql).map(({ text }) => text)
const refusal = (type: QueryErrorName, message: RegExp) => (error: unknown) =>
  error instanceof QueryError && error.type === type && message.test(error.message)

test('quoted text, parameters and symbols are tokens; white space and comments are skipped', () => {
  assert.deepEqual(texts("SELECT/*a*/'it''s' -- b\n,`x``y`,\"z\"#! c\n<=1_0.5e-3 /**/ FROM\u00a0t"), [
    'SELECT',
    "'it''s'",
    ',',
    '`x``y`',
    ',',
    '"z"',
    '<=',
    '1_0.5e-3',
    'FROM',
    't',
  ])
  assert.deepEqual(
    tokenize("{ a : DateTime('UTC') } 'a\\x41\\n\\q' {b} .5 0xfF").map(({ kind, value }) => `${kind} ${value}`),
    ["parameter a:DateTime('UTC')", 'string aA\n\\q', 'symbol {', 'word b', 'symbol }', 'number .5', 'number 0xfF'],
  )
})

test('an escape of two hexadecimal digits is one character; a backslash before any other letter stays', () => {
  const values = tokenize("'\\x4' '\\x4G' '\\41' '\\X41' '\\d+' '\\%'").map(({ value }) => value)
  assert.deepEqual(values, ['\\x4', '\\x4G', '\\41', '\\X41', '\\d+', '\\%'])
  const escaped = tokenize("'\\\\d' '\\'' '\\/' '\\e'").map(({ value }) => value)
  assert.deepEqual(escaped, ['\\d', "'", '/', '\x1b'])
})

test('binary numbers are one token', () => {
  assert.deepEqual(texts('0b101 0B1 0b2'), ['0b101', '0B1', '0', 'b2'])
})

test('closed brackets of any kind do not count as nesting', () => {
  for (const pair of ['()', '[]', '{}']) assert.equal(tokenize(pair.repeat(500)).length, 1000, pair)
})

test('an INSERT is known by its first word, whatever follows it', () => {
  for (const sql of [
    "INSERT INTO t FORMAT TabSeparated\nit's",
    '/* a */ -- b\n insert into t FORMAT Native\n\0',
    'Insert',
  ])
    assert.ok(isInsert(sql), sql)
  for (const sql of ['SELECT 1 INSERT', '`INSERT` INTO t', 'INSERTS', '-- INSERT', '/* INSERT', '/* a', ''])
    assert.ok(!isInsert(sql), sql)
})

test('a quoted word is never a keyword', () => {
  assert.deepEqual(
    tokenize('from "from" `from` \'from\'').map(({ upper }) => upper),
    ['FROM', '', '', ''],
  )
})

test('refuses unterminated quotes and comments, and NUL characters, with their position', () => {
  for (const [sql, message] of [
    ["SELECT 'a", /position 7/],
    ['SELECT `a', /position 7/],
    ['SELECT /* a', /comment at position 7/],
    ["SELECT 'a\\", /position 7/],
    ['SELECT 1 \0 2', /NUL character at position 9/],
    ["SELECT 'a\0'", /NUL character at position 9/],
    ['SELECT 1 -- \0', /NUL character at position 12/],
  ] as const)
    assert.throws(() => tokenize(sql), refusal('SYNTAX_ERROR', message), sql)
})

test('T29: length, tokens and nesting of a statement are bounded, and the refusal names the limit', () => {
  const list = (count: number) => '1,'.repeat(count / 2)
  assert.equal(tokenize(list(STATEMENT_TOKENS_MAX)).length, STATEMENT_TOKENS_MAX)
  assert.throws(
    () => tokenize(list(STATEMENT_TOKENS_MAX + 2)),
    refusal('TOO_BIG_AST', /20000 tokens .statement_tokens/),
  )
  assert.equal(tokenize(' '.repeat(STATEMENT_LENGTH_MAX)).length, 0)
  assert.throws(
    () => tokenize(' '.repeat(STATEMENT_LENGTH_MAX + 1)),
    refusal('QUERY_IS_TOO_LARGE', /262144 characters .statement_length/),
  )
  for (const [open, close] of [
    ['(', ')'],
    ['[', ']'],
    ['{', '}'],
  ] as const) {
    const nested = (count: number) => open.repeat(count) + close.repeat(count)
    assert.equal(tokenize(nested(STATEMENT_NESTING_MAX)).length, 2 * STATEMENT_NESTING_MAX)
    assert.throws(
      () => tokenize(nested(STATEMENT_NESTING_MAX + 1)),
      refusal('TOO_DEEP_AST', /100 levels .statement_nesting/),
    )
  }
})

/** Statements of a given length that take the tokenizer the most work; they need not be valid. */
const PUMPED: Readonly<Record<string, (size: number) => string>> = {
  'blanks in a parameter': (size) => `select {a:${' '.repeat(size)}`,
  'blanks before the colon': (size) => `select {a${' '.repeat(size)}`,
  'blanks before the name': (size) => `select {${' '.repeat(size)}`,
  'blanks around a type': (size) => `select {a:${' '.repeat(size / 2)}x${' '.repeat(size / 2)}`,
  'a name that does not end': (size) => `{${'a'.repeat(size)}`,
  'open parameters': (size) => '{a:'.repeat(size / 3),
  'pairs of braces': (size) => '{} '.repeat(size / 3),
  'open comments': (size) => `${'/* '.repeat(size / 3)}`,
  comments: (size) => '/**/'.repeat(size / 4),
  'comment lines': (size) => '--\n'.repeat(size / 3),
  dashes: (size) => '-'.repeat(size),
  digits: (size) => '1'.repeat(size),
  'digit groups': (size) => '1_'.repeat(size / 2),
  exponents: (size) => '1e'.repeat(size / 2),
  points: (size) => '.'.repeat(size),
  'a long word': (size) => 'a$'.repeat(size / 2),
  'doubled quotes': (size) => `'${"''".repeat(size / 2)}`,
  backslashes: (size) => `'${'\\x4'.repeat(size / 4)}`,
  'symbols of two': (size) => '<='.repeat(size / 2),
}

for (const [name, pump] of Object.entries(PUMPED))
  test(`T29: the time to tokenise a statement grows in proportion to its length: ${name}`, () => {
    const { ratio, milliseconds } = growthOf((size) => {
      const sql = pump(size)
      return () => {
        try {
          tokenize(sql)
        } catch (error) {
          assert.ok(error instanceof QueryError, String(error))
        }
      }
    }, STATEMENT_LENGTH_MAX)
    assert.ok(ratio <= GROWTH_MAX, `${ratio} times, ${milliseconds} ms`)
  })
