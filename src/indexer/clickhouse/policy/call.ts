import { QueryError } from '../../query/error.ts'
import { shownName } from '../../query/names.ts'
import { isSymbol } from '../../query/sql-tokens.ts'
import { isName } from './cursor.ts'
import { isClickHouseFunction } from './functions.ts'
import { type Reader, readExpressions, readNested, type Scope } from './grammar.ts'
import { readType } from './type.ts'
import { readWindow } from './window.ts'

/** A name and a parenthesis: EXISTS, ANY and ALL of a query, CAST, or a function of the list with all that may stand behind it. */
export function readCall(reader: Reader, scope: Scope): void {
  const { upper, value } = reader.take()
  reader.expectSymbol('(')
  if ((upper === 'EXISTS' || upper === 'ANY' || upper === 'ALL') && reader.beginsQuery())
    return readNested(reader, ')', () => reader.query(scope))
  if (!isClickHouseFunction(value)) throw new QueryError('UNKNOWN_FUNCTION', `Unknown function ${shownName(value)}.`)
  if (upper === 'CAST') return readNested(reader, ')', () => readCast(reader, scope))
  readArguments(reader, scope)
  // Parameters of the function come first, in parentheses of their own.
  if (reader.takeSymbol('(') !== undefined) readArguments(reader, scope)
  if (reader.takeWord('IGNORE', 'RESPECT') !== undefined) reader.expectWord('NULLS')
  if (reader.takeWord('FILTER') !== undefined) {
    reader.expectSymbol('(')
    readNested(reader, ')', () => {
      reader.expectWord('WHERE')
      reader.expression(scope)
    })
  }
  if (reader.takeWord('OVER') !== undefined) readOver(reader, scope)
}

function readArguments(reader: Reader, scope: Scope): void {
  readNested(reader, ')', () => {
    if (isSymbol(reader.peek(), ')')) return
    reader.takeWord('DISTINCT')
    readExpressions(reader, scope)
  })
}

/** `CAST(x AS T)` or `CAST(x, 'T')`. */
function readCast(reader: Reader, scope: Scope): void {
  reader.operation(scope)
  if (reader.takeWord('AS') !== undefined) readType(reader)
  else {
    reader.expectSymbol(',')
    reader.expression(scope)
  }
}

function readOver(reader: Reader, scope: Scope): void {
  if (isName(reader.peek())) reader.take()
  else {
    reader.expectSymbol('(')
    readNested(reader, ')', () => readWindow(reader, scope))
  }
}
