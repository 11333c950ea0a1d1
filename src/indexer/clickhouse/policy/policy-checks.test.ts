import assert from 'node:assert/strict'
import { test } from 'node:test'
import { QueryError, type QueryErrorName } from '../../query/error.ts'
import { parseStatement } from '../../query/statement.ts'
import { PUBLISHED, PUBLISHED_NAMES } from '../../schema.ts'
import { applyClickHousePolicy } from './policy.ts'
import { KEYWORDS } from './reader.ts'

const validate = (sql: string) =>
  applyClickHousePolicy(parseStatement(sql), { tables: PUBLISHED_NAMES, database: 'chain' })

/** One statement for each check of the grammar, with its error: without the check the statement passes or gives another error. */
const REFUSED: readonly (readonly [sql: string, type: QueryErrorName, message: RegExp])[] = [
  ['SELECT (1', 'SYNTAX_ERROR', /ends too early/],
  ['SELECT [1', 'SYNTAX_ERROR', /ends too early/],
  ['SELECT max(1', 'SYNTAX_ERROR', /ends too early/],
  ['SELECT max(1]', 'SYNTAX_ERROR', /\] is not supported here/],
  ['SELECT x[1) FROM blocks', 'SYNTAX_ERROR', /\) is not supported here/],
  ['SELECT 1)', 'SYNTAX_ERROR', /\) is not supported here/],
  ['SELECT 1 AS', 'SYNTAX_ERROR', /ends too early/],
  ['SELECT 1 AS 5', 'SYNTAX_ERROR', /5 is not supported here/],
  ['SELECT 1 AS from', 'SYNTAX_ERROR', /from is not supported here; a name that is a keyword needs quotes/],
  ['SELECT t. FROM blocks t', 'SYNTAX_ERROR', /FROM is not supported here/],
  ['SELECT * FROM chain.', 'SYNTAX_ERROR', /ends too early/],
  ['SELECT * FROM blocks AS', 'SYNTAX_ERROR', /ends too early/],
  ['SELECT * FROM', 'SYNTAX_ERROR', /ends too early/],
  ['SELECT', 'SYNTAX_ERROR', /ends too early/],
  ['SELECT INTERVAL 1', 'SYNTAX_ERROR', /ends too early/],
  ['SELECT INTERVAL 1 FORTNIGHT', 'SYNTAX_ERROR', /FORTNIGHT is not supported here/],
  [`SELECT ${'CASE WHEN '.repeat(101)}1`, 'TOO_DEEP_AST', /100 levels .statement_nesting/],
  [`SELECT ${'INTERVAL '.repeat(101)}1`, 'TOO_DEEP_AST', /100 levels .statement_nesting/],
  ['SELECT CASE 1 END', 'SYNTAX_ERROR', /END is not supported here/],
  ['SELECT CASE WHEN 1 END', 'SYNTAX_ERROR', /END is not supported here/],
  ['SELECT CASE WHEN 1 THEN 2', 'SYNTAX_ERROR', /ends too early/],
  [`SELECT {a:${'Array('.repeat(60)}}`, 'UNKNOWN_TYPE', /of a query parameter/],
  ["SELECT {a:Enum8('}", 'UNKNOWN_TYPE', /of a query parameter/],
  ['SELECT {a:Array(Identifier)}', 'UNKNOWN_TYPE', /of a query parameter/],
  ["SELECT CAST(1 AS Enum8('a' = x))", 'SYNTAX_ERROR', /is not supported here/],
  ['SELECT CAST(1 AS AggregateFunction(sum))', 'UNKNOWN_TYPE', /AggregateFunction/],
  ['SELECT CAST(1 Int8)', 'SYNTAX_ERROR', /Int8 is not supported here/],
  ['SELECT exists(1)', 'UNKNOWN_FUNCTION', /exists/],
  [`SELECT sum${'If'.repeat(60)}(1)`, 'UNKNOWN_FUNCTION', /sumIf/],
  ['SELECT max(1)(2)(3)', 'SYNTAX_ERROR', /\( is not supported here/],
  ['SELECT max(1) IGNORE 5', 'SYNTAX_ERROR', /5 is not supported here/],
  ['SELECT max(1) FILTER (1)', 'SYNTAX_ERROR', /1 is not supported here/],
  ['SELECT max(1) OVER (ROWS x PRECEDING)', 'SYNTAX_ERROR', /is not supported here/],
  ['SELECT max(1) OVER (ROWS 1 x)', 'SYNTAX_ERROR', /x is not supported here/],
  ['SELECT max(1) OVER (ROWS CURRENT x)', 'SYNTAX_ERROR', /x is not supported here/],
  ['SELECT slot FROM blocks ORDER BY slot COLLATE leader', 'SYNTAX_ERROR', /is not supported here|too early/],
  ['SELECT slot FROM blocks ORDER BY slot WITH TIES', 'SYNTAX_ERROR', /TIES is not supported here/],
  ['SELECT slot FROM blocks ORDER slot', 'SYNTAX_ERROR', /slot is not supported here/],
  ['SELECT slot FROM blocks GROUP slot', 'SYNTAX_ERROR', /slot is not supported here/],
  ['SELECT slot FROM blocks GROUP BY slot WITH x', 'SYNTAX_ERROR', /x is not supported here/],
  ['SELECT slot FROM blocks LIMIT slot', 'SYNTAX_ERROR', /slot is not supported here/],
  ['SELECT slot FROM blocks LIMIT 1 WITH x', 'SYNTAX_ERROR', /x is not supported here/],
  ['SELECT slot FROM blocks OFFSET slot', 'SYNTAX_ERROR', /slot is not supported here/],
  ['SELECT slot FROM blocks FETCH 1', 'SYNTAX_ERROR', /1 is not supported here/],
  ['SELECT slot FROM blocks WINDOW AS (ORDER BY slot)', 'SYNTAX_ERROR', /AS is not supported here/],
  ['SELECT slot FROM blocks JOIN rewards USING slot, transactions', 'SYNTAX_ERROR', /, is not supported here/],
  ['SELECT slot FROM blocks JOIN rewards USING (slot + 1)', 'SYNTAX_ERROR', /\+ is not supported here/],
  ['SELECT slot FROM blocks LEFT rewards', 'SYNTAX_ERROR', /rewards is not supported here/],
  ['SELECT slot FROM blocks SAMPLE x', 'SYNTAX_ERROR', /is not supported here|too early/],
  ['SELECT slot FROM (blocks)', 'SYNTAX_ERROR', /blocks is not supported here/],
  ['SELECT slot FROM (1)', 'SYNTAX_ERROR', /1 is not supported here/],
  ['WITH x AS (1) SELECT 1', 'SYNTAX_ERROR', /1 is not supported here/],
  ['WITH RECURSIVE x AS (SELECT 1) SELECT 1', 'NOT_IMPLEMENTED', /RECURSIVE/],
  ['SELECT slot FROM Numbers(3)', 'UNKNOWN_FUNCTION', /Numbers/],
  ['SELECT 1 IN (t.slot) FROM blocks t', 'SYNTAX_ERROR', /without its table/],
  ['SELECT 1 IN ((t.slot), 2) FROM blocks t', 'SYNTAX_ERROR', /without its table/],
  ['SELECT 1 IN (slot) FROM blocks', 'UNKNOWN_TABLE', /slot/],
  ['SELECT 1 AS rewards, 2 IN rewards', 'SYNTAX_ERROR', /name of an expression/],
  ['SELECT 1 rewards, 2 IN (rewards)', 'SYNTAX_ERROR', /name of an expression/],
  ['SELECT * FROM chain.blocks.slot', 'UNKNOWN_TABLE', /blocks/],
  ['SELECT 1 IS 5', 'SYNTAX_ERROR', /5 is not supported here/],
  ['DESCRIBE SELECT 1', 'READONLY', /readonly mode/],
  ['SELECT 1 NOT 5', 'SYNTAX_ERROR', /5 is not supported here/],
  ['SELECT 1 @ 2', 'SYNTAX_ERROR', /@ is not supported here/],
  ['SELECT \u212a', 'SYNTAX_ERROR', /\? is not supported here/],
  ['SELECT * APPLY(max) FROM blocks', 'NOT_IMPLEMENTED', /APPLY/],
  ['SELECT 1 INTO OUTFILE', 'NOT_IMPLEMENTED', /INTO/],
  ['SELECT * FROM (SELECT 1 SETTINGS max_threads = 1)', 'NOT_IMPLEMENTED', /at the end of the statement/],
]

test('T14: each check of the grammar refuses its statement with the expected error', () => {
  for (const [sql, type, message] of REFUSED)
    assert.throws(
      () => validate(sql),
      (error: unknown) => {
        assert.ok(error instanceof QueryError, `${sql}: ${String(error)}`)
        assert.equal(error.type, type, `${sql}: ${error.message}`)
        assert.match(error.message, message, sql)
        return true
      },
      sql,
    )
})

test('no column or table has the name of a keyword, so none needs quotes', () => {
  for (const { name } of PUBLISHED.flatMap((table) => [table, ...table.columns]))
    assert.ok(!KEYWORDS.has(name.toUpperCase()), name)
})
