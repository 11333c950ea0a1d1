import { QueryError, unknownTable } from '../../query/error.ts'
import { isSymbol, isWord, shownName } from '../../query/sql-tokens.ts'
import { CLICKHOUSE_TABLE_FUNCTIONS } from './allowed-functions.ts'
import { isName, type Reader, readExpressions, readList, readNested, type Scope } from './reader.ts'

/** Words that may precede JOIN. */
const JOIN_WORDS = [
  'GLOBAL',
  'LOCAL',
  'ANY',
  'ALL',
  'ASOF',
  'SEMI',
  'ANTI',
  'INNER',
  'LEFT',
  'RIGHT',
  'FULL',
  'OUTER',
  'CROSS',
  'PASTE',
] as const

/** The FROM clause: tables, subqueries and their joins. */
export function readTables(reader: Reader, scope: Scope): void {
  readTable(reader, scope)
  for (;;) {
    if (reader.takeSymbol(',') !== undefined) readTable(reader, scope)
    else if (!readJoin(reader, scope)) return
  }
}

/** Reads a join, if one follows. Returns whether it did. */
function readJoin(reader: Reader, scope: Scope): boolean {
  if (isArrayJoin(reader)) {
    reader.takeWord('LEFT', 'INNER')
    reader.expectWord('ARRAY')
    reader.expectWord('JOIN')
    readList(reader, () => readAliased(reader, scope))
    return true
  }
  let isJoin = false
  while (reader.takeWord(...JOIN_WORDS) !== undefined) isJoin = true
  if (!isJoin && !isWord(reader.peek(), 'JOIN')) return false
  reader.expectWord('JOIN')
  readTable(reader, scope)
  if (reader.takeWord('ON') !== undefined) reader.expression(scope)
  else if (reader.takeWord('USING') !== undefined) readUsing(reader)
  return true
}

function isArrayJoin(reader: Reader): boolean {
  const isSided = isWord(reader.peek(), 'LEFT') || isWord(reader.peek(), 'INNER')
  return isWord(reader.peek(isSided ? 1 : 0), 'ARRAY')
}

/** Columns in parentheses, or one without. After that a comma is refused: the server would read another column, this grammar a table. */
function readUsing(reader: Reader): void {
  if (reader.takeSymbol('(') !== undefined)
    return readNested(reader, ')', () => readList(reader, () => reader.expectName()))
  reader.expectName()
  if (isSymbol(reader.peek(), ',')) throw reader.unexpected()
}

function readTable(reader: Reader, scope: Scope): void {
  if (reader.takeSymbol('(') !== undefined) readNested(reader, ')', () => reader.query(scope))
  else if (isName(reader.peek()) && isSymbol(reader.peek(1), '(')) readTableFunction(reader, scope)
  else reader.tableName(scope)
  if (reader.takeWord('AS') !== undefined) reader.expectName()
  else reader.takeName()
  reader.takeWord('FINAL')
  if (reader.takeWord('SAMPLE') === undefined) return
  readRatio(reader)
  if (reader.takeWord('OFFSET') !== undefined) readRatio(reader)
}

function readTableFunction(reader: Reader, scope: Scope): void {
  const name = reader.expectName()
  if (!CLICKHOUSE_TABLE_FUNCTIONS.has(name))
    throw new QueryError('UNKNOWN_FUNCTION', `Unknown table function ${shownName(name)}.`)
  reader.expectSymbol('(')
  readNested(reader, ')', () => readExpressions(reader, scope))
}

/** `1 / 10` or `0.1`. */
function readRatio(reader: Reader): void {
  do if (reader.take().kind !== 'number') throw reader.unexpected()
  while (reader.takeSymbol('/') !== undefined)
}

/** A published table, qualified or not, or a common table expression in scope. */
export function readTableName(reader: Reader, scope: Scope): void {
  const first = reader.expectName()
  const isQualified = reader.takeSymbol('.') !== undefined
  if (isQualified && first !== reader.database)
    throw new QueryError('UNKNOWN_DATABASE', `Database ${shownName(first)} does not exist.`)
  const name = isQualified ? reader.expectName() : first
  const isKnown = reader.tables.has(name) || (!isQualified && scope.has(name))
  if (!isKnown || isSymbol(reader.peek(), '.')) throw unknownTable(shownName(name))
}

/** An expression whose alias may follow without AS. */
export function readAliased(reader: Reader, scope: Scope): void {
  reader.expression(scope)
  const alias = reader.takeName()
  if (alias !== undefined) reader.aliases.add(alias)
}
