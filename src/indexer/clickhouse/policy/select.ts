import { isSymbol, isWord } from '../../query/sql-tokens.ts'
import { readOrderBy, readParameter, readWindow } from './calls.ts'
import { CommonTables, isName, type Reader, readExpressions, readList, readNested, type Scope } from './reader.ts'
import { readAliased, readTables } from './tables.ts'

/** A query: one SELECT, or several with set operations between them. Common table expressions of one are in scope for those after it. */
export function readQuery(reader: Reader, outer: Scope): void {
  const scope = new CommonTables(outer)
  do readTerm(reader, scope)
  while (takeSetOperation(reader))
}

function takeSetOperation(reader: Reader): boolean {
  if (reader.takeWord('UNION', 'EXCEPT', 'INTERSECT') === undefined) return false
  reader.takeWord('ALL', 'DISTINCT')
  return true
}

function readTerm(reader: Reader, scope: CommonTables): void {
  if (reader.takeSymbol('(') === undefined) return readSelect(reader, scope)
  readNested(reader, ')', () => readQuery(reader, scope))
}

function readSelect(reader: Reader, inScope: CommonTables): void {
  if (reader.takeWord('WITH') !== undefined) readWith(reader, inScope)
  reader.expectWord('SELECT')
  reader.takeWord('DISTINCT')
  readList(reader, () => readAliased(reader, inScope))
  if (reader.takeWord('FROM') !== undefined) readTables(reader, inScope)
  if (reader.takeWord('PREWHERE') !== undefined) reader.expression(inScope)
  if (reader.takeWord('WHERE') !== undefined) reader.expression(inScope)
  if (reader.takeWord('GROUP') !== undefined) readGroupBy(reader, inScope)
  if (reader.takeWord('HAVING') !== undefined) reader.expression(inScope)
  if (reader.takeWord('WINDOW') !== undefined) readList(reader, () => readNamedWindow(reader, inScope))
  if (reader.takeWord('QUALIFY') !== undefined) reader.expression(inScope)
  if (reader.takeWord('ORDER') !== undefined) readOrderBy(reader, inScope)
  readLimits(reader, inScope)
}

/** Common table expressions, each in scope for those after it and not for itself, and expressions with aliases. */
function readWith(reader: Reader, inScope: CommonTables): void {
  readList(reader, () => {
    if (isWord(reader.peek(), 'RECURSIVE')) throw reader.unexpected()
    const isTable = isName(reader.peek()) && isWord(reader.peek(1), 'AS') && isSymbol(reader.peek(2), '(')
    if (!isTable) return reader.expression(inScope)
    const name = reader.expectName()
    reader.take()
    reader.take()
    readNested(reader, ')', () => readQuery(reader, inScope))
    inScope.add(name)
  })
}

function readGroupBy(reader: Reader, scope: Scope): void {
  reader.expectWord('BY')
  const isSets = reader.takeWord('GROUPING') !== undefined
  if (isSets) reader.expectWord('SETS')
  const isGrouped = isWord(reader.peek(), 'ROLLUP') || isWord(reader.peek(), 'CUBE')
  if (isSets || (isGrouped && isSymbol(reader.peek(1), '('))) {
    if (!isSets) reader.take()
    reader.expectSymbol('(')
    readNested(reader, ')', () => readExpressions(reader, scope))
  } else if (reader.takeWord('ALL') === undefined) readExpressions(reader, scope)
  while (reader.takeWord('WITH') !== undefined) reader.expectWord('TOTALS', 'ROLLUP', 'CUBE')
}

function readNamedWindow(reader: Reader, scope: Scope): void {
  reader.expectName()
  reader.expectWord('AS')
  reader.expectSymbol('(')
  readNested(reader, ')', () => readWindow(reader, scope))
}

/** A number of rows, or a parameter for it. */
function readCount(reader: Reader): void {
  if (reader.peek()?.kind === 'parameter') readParameter(reader)
  else if (reader.peek()?.kind === 'number') reader.take()
  else throw reader.unexpected()
}

/** `LIMIT n [, m | OFFSET m] [WITH TIES] [BY …]`, a second one after BY, OFFSET and FETCH. */
function readLimits(reader: Reader, scope: Scope): void {
  while (reader.takeWord('LIMIT') !== undefined) {
    readCount(reader)
    if (reader.takeSymbol(',') !== undefined || reader.takeWord('OFFSET') !== undefined) readCount(reader)
    if (reader.takeWord('WITH') !== undefined) reader.expectWord('TIES')
    if (reader.takeWord('BY') === undefined) break
    if (reader.takeWord('ALL') === undefined) readExpressions(reader, scope)
  }
  if (reader.takeWord('OFFSET') !== undefined) {
    readCount(reader)
    reader.takeWord('ROW', 'ROWS')
  }
  if (reader.takeWord('FETCH') === undefined) return
  reader.expectWord('FIRST', 'NEXT')
  if (reader.peek()?.kind === 'number') reader.take()
  reader.expectWord('ROW', 'ROWS')
  if (reader.takeWord('ONLY') !== undefined) return
  reader.expectWord('WITH')
  reader.expectWord('TIES')
}
