import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseStatement } from '../query/statement.ts'
import type { Compilation } from './compilation.ts'
import { compileStatement } from './compile-statement.ts'
import type { Context } from './context.ts'
import { displayName } from './display-name.ts'
import { expressionKey } from './expression/key.ts'
import { Resolving } from './expression/resolving.ts'
import { parseSelect } from './parse-select.ts'
import { Aliases, CommonTables } from './scope.ts'
import type { Expression, Literal } from './syntax.ts'

const compiled = (sql: string) => compileStatement(parseStatement(sql))
const times = (count: number, of: (at: number) => string, by = ',') =>
  Array.from({ length: count }, (_, at) => of(at)).join(by)

describe('statements that are short and take long', () => {
  test('chains of operators are as deep as parentheses, and refused before they are translated', () => {
    const tooDeep = { name: 'QueryError', type: 'TOO_DEEP_AST', message: /nested too deeply\. Maximum: 250 levels/ }
    for (const chain of [
      '+1'.repeat(260),
      '*1-1'.repeat(260),
      ' IS NULL'.repeat(260),
      ' = 1'.repeat(260),
      '::Int8'.repeat(260),
      '[1]'.repeat(260),
      '.1'.repeat(260),
      ' XOR 1'.repeat(260),
      ' IN (1)'.repeat(260),
    ])
      assert.throws(() => compiled(`SELECT slot${chain} FROM blocks GROUP BY slot`), tooDeep, chain.slice(0, 10))
    // Neither parentheses nor functions between them start again.
    const inParts = `SELECT ${'abs('.repeat(10)}slot${`${'+1'.repeat(30)})`.repeat(10)} FROM blocks`
    assert.throws(() => compiled(inParts), tooDeep)
    assert.throws(() => compiled(times(260, () => 'SELECT 1', ' UNION ALL ')), tooDeep)
    assert.throws(() => compiled(`VALUES ${times(260, () => '(1)')}`), tooDeep)
    assert.throws(() => compiled(`SELECT 1 FROM ${times(260, (at) => `(SELECT 1 AS a${at})`)}`), tooDeep)
  })

  test('a long list parameter is read once, and its uses count together', () => {
    const list = `[${times(9000, () => "'abcdefghijklmnopqrstuvw'")}]`
    const uses = (count: number) => {
      let reads = 0
      const given = Object.defineProperty({}, 'a', { enumerable: true, get: () => (reads++, list) })
      const statement = parseStatement(`SELECT ${times(count, () => '{a:Array(String)}')}`)
      return { compile: () => compileStatement(statement, { given: given as { a: string } }), reads: () => reads }
    }
    assert.ok(uses(3).compile())
    const many = uses(9000)
    assert.throws(many.compile, { type: 'TOO_BIG_AST', message: /translation_length/ })
    assert.ok(many.reads() < 20)
  })

  test('substrings inside each other grow with their number', () => {
    const nested = (count: number, start: string, end: string) =>
      compiled(`SELECT ${start.repeat(count)}signature${end.repeat(count)} FROM transactions`).sql.length
    for (const [start, end] of [
      ['substring(', ', toInt8(fee), toInt8(fee))'],
      ['substring(', ', toInt8(fee))'],
      ['substringUTF8(', ', -3, -1)'],
      ['substring(signature, length(', '), -1)'],
      ['substring(signature, 2, toInt64(length(', ')))'],
      ['unhex(hex(substring(unhex(', '), toInt8(fee), toInt8(fee))))'],
    ] as const) {
      const [two, four, eight] = [2, 4, 8].map((count) => nested(count, start, end)) as [number, number, number]
      assert.ok(eight - four <= 2.2 * (four - two), `${start}: ${two}, ${four}, ${eight} characters`)
    }
  })

  test('AND, OR and || are one call of all their parts', () => {
    for (const operator of [' AND ', ' OR ']) assert.ok(compiled(`SELECT ${times(900, () => '1', operator)}`))
    assert.ok(compiled(`SELECT ${times(90, () => "'a'", '||')}`))
    assert.equal(compiled("SELECT ('a' || 'b') || 'c' AS x").sql, compiled("SELECT 'a' || 'b' || 'c' AS x").sql)
    assert.equal(compiled('SELECT (1 AND 0) AND 1 AS x').sql, compiled('SELECT 1 AND 0 AND 1 AS x').sql)
  })

  test('more than 20 tables are refused before their joins are translated', () => {
    const tooMany = { name: 'QueryError', type: 'TOO_BIG_AST', message: /too many tables\. Maximum: 20/ }
    const joins = (count: number) => times(count, (at) => `JOIN blocks b${at} ON a.slot = b${at}.slot`, ' ')
    assert.ok(compiled(`SELECT 1 FROM blocks a ${joins(19)}`))
    for (const from of [
      `blocks a ${joins(20)}`,
      times(21, () => 'blocks'),
      times(21, () => '(SELECT slot FROM blocks)'),
      times(21, () => 'numbers(3)'),
    ])
      assert.throws(() => compiled(`SELECT 1 FROM ${from}`), tooMany, from.slice(0, 30))
  })

  test('tables of WITH count where they are used', () => {
    const commons = times(30, (at) => `c${at} AS (SELECT slot FROM blocks)`)
    assert.ok(compiled(`WITH ${commons} SELECT slot FROM c29`))
    assert.ok(compiled(`WITH ${times(30, (at) => `(SELECT max(slot) FROM blocks) AS m${at}`)} SELECT m0 FROM blocks`))
  })
})

describe('the key of an expression', () => {
  /** Keys of the columns of a SELECT, in the scope of its aliases, and the steps that they took. */
  function keysIn(sql: string) {
    let steps = 0
    const short = new Map<string, string>()
    const compilation = {
      countStep: () => void steps++,
      countText() {},
      constantKey: (constant: Literal) => compilation.shortText(displayName(constant)),
      shortText: (text: string) => short.get(text) ?? short.set(text, `\0${short.size}`).get(text),
    } as unknown as Compilation
    const aliases = new Aliases(undefined)
    const query = parseSelect(parseStatement(sql).tokens)
    const items = query.kind === 'select' ? query.items : []
    for (const item of items) if (item.kind === 'alias') aliases.add(item.name, item.of)
    const scope = {
      columns: [],
      aliases,
      resolving: new Resolving(),
      commons: new CommonTables(undefined),
      windows: new Map(),
    }
    const context: Context = { compilation, scope, lambdas: new Map(), lambdaDepth: 0, rowsOf: (array) => array }
    return { items, key: (of: Expression) => expressionKey(of, context), steps: () => steps }
  }

  test('takes one step for each part, though it is requested at each level', () => {
    const { items, key, steps } = keysIn(`SELECT slot${'+1'.repeat(200)}`)
    for (let of: Expression | undefined = items[0]; of?.kind === 'call'; [of] = of.args) key(of)
    assert.equal(steps(), 201)
    const aliased = keysIn(`SELECT slot AS a0, ${times(60, (at) => `a${at} + a${at} AS a${at + 1}`)}`)
    for (const item of aliased.items) assert.ok(aliased.key(item).length < 10)
    assert.ok(aliased.steps() < 20_000, String(aliased.steps()))
  })

  test('is the same for an alias and what it stands for, and for nothing else', () => {
    const { items, key } = keysIn(
      'SELECT slot AS a, a + 1, slot + 1, (a + 1) AS b, 1 + slot, `a + 1`, slot + 2, fee + 1, x + 1 AS x, x + 1 + 1',
    )
    const [, second, third, fourth, ...others] = items.map(key)
    assert.equal(second, third)
    assert.equal(second, fourth)
    const [reversed, quoted, two, fee, own, twice] = others
    assert.equal(new Set([second, reversed, quoted, two, fee, own, twice]).size, 7)
  })
})
