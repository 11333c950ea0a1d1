import assert from 'node:assert/strict'
import { test } from 'node:test'
import { QueryError, type QueryErrorName } from '../query/error.ts'
import { parseStatement } from '../query/statement.ts'
import { compileStatement } from './compile-statement.ts'

const compile = (sql: string, given: Record<string, string>) => compileStatement(parseStatement(sql), { given })

const refuses = (sql: string, given: Record<string, string>, type: QueryErrorName): void =>
  assert.throws(
    () => compile(sql, given),
    (error: unknown) => error instanceof QueryError && error.type === type && error.message.length < 300,
    sql.slice(0, 80),
  )

test('parameters are bound, and lists are written into the statement value by value', () => {
  const { sql, parameters } = compile("SELECT {a:DateTime64(3, 'UTC')}, {b:Array(Nullable(UInt64))}", {
    a: 'x',
    b: '[1, 2]',
  })
  assert.match(sql, /CAST\(\$p1 AS TIMESTAMP\).*CAST\(\[1, 2\] AS UBIGINT\[\]\)/)
  assert.deepEqual(parameters, { p1: 'x' })
})

test('T14: a list parameter that contains more than values is refused', () => {
  for (const list of [
    '1',
    '[1',
    '[1; 2]',
    '[x]',
    '[(SELECT 1)]',
    '[1 2]',
    '[1,,2]',
    '[[1]]',
    '[getenv(1)]',
    '[-1, {a:String}]',
    '[-]',
    '[- -1]',
    "[-'a']",
    '[1,]',
    '[*1]',
  ])
    refuses('SELECT {a:Array(String)}', { a: list }, 'TYPE_MISMATCH')
})

test('T29: types and names of parameters are bounded', () => {
  refuses(`SELECT {a:${'Array('.repeat(30)}String${')'.repeat(30)}}`, { a: '[]' }, 'UNKNOWN_TYPE')
  refuses(`SELECT {a:${'x'.repeat(100_000)}}`, { a: '1' }, 'UNKNOWN_TYPE')
  refuses('SELECT {a:Identifier}', { a: '1' }, 'UNKNOWN_TYPE')
  refuses('SELECT {a:constructor}', { a: '1' }, 'UNKNOWN_TYPE')
  refuses(`SELECT {${'a'.repeat(100_000)}:String}`, {}, 'UNKNOWN_QUERY_PARAMETER')
  refuses('SELECT {toString:String}', {}, 'UNKNOWN_QUERY_PARAMETER')
})
