import { QueryError } from '../../query/error.ts'
import { foldName, isSymbol, shownName } from '../../query/sql-tokens.ts'
import { isClickHouseFunction } from './allowed-functions.ts'
import { type Cursor, isName, type Reader, readExpressions, readList, readNested, type Scope } from './reader.ts'

/** A name before a parenthesis: EXISTS, ANY and ALL of a query, CAST, or a listed function with its NULLS, FILTER and OVER clauses. */
export function readCall(reader: Reader, scope: Scope): void {
  const { upper, value } = reader.take()
  reader.expectSymbol('(')
  if ((upper === 'EXISTS' || upper === 'ANY' || upper === 'ALL') && reader.beginsQuery())
    return readNested(reader, ')', () => reader.query(scope))
  if (!isClickHouseFunction(value)) throw new QueryError('UNKNOWN_FUNCTION', `Unknown function ${shownName(value)}.`)
  if (upper === 'CAST') return readNested(reader, ')', () => readCast(reader, scope))
  readTypeArguments(reader, scope)
  // A parametric function has its parameters in a first pair of parentheses.
  if (reader.takeSymbol('(') !== undefined) readTypeArguments(reader, scope)
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

function readTypeArguments(reader: Reader, scope: Scope): void {
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

/** A window definition, in the parentheses after OVER or in the WINDOW clause. */
export function readWindow(reader: Reader, scope: Scope): void {
  if (reader.takeWord('PARTITION') !== undefined) {
    reader.expectWord('BY')
    readExpressions(reader, scope)
  }
  if (reader.takeWord('ORDER') !== undefined) readOrderBy(reader, scope)
  if (reader.takeWord('ROWS', 'RANGE') === undefined) return
  if (reader.takeWord('BETWEEN') === undefined) return readFrameEnd(reader)
  readFrameEnd(reader)
  reader.expectWord('AND')
  readFrameEnd(reader)
}

function readFrameEnd(reader: Reader): void {
  if (reader.takeWord('CURRENT') !== undefined) {
    reader.expectWord('ROW')
    return
  }
  if (reader.takeWord('UNBOUNDED') === undefined && reader.take().kind !== 'number') throw reader.unexpected()
  reader.expectWord('PRECEDING', 'FOLLOWING')
}

/** The rest of ORDER BY. WITH FILL FROM is not supported, because FROM would look like the table clause. */
export function readOrderBy(reader: Reader, scope: Scope): void {
  reader.expectWord('BY')
  if (reader.takeWord('ALL') !== undefined) return
  readList(reader, () => {
    reader.expression(scope)
    reader.takeWord('ASC', 'DESC', 'ASCENDING', 'DESCENDING')
    if (reader.takeWord('NULLS') !== undefined) reader.expectWord('FIRST', 'LAST')
    if (reader.takeWord('COLLATE') !== undefined && reader.take().kind !== 'string') throw reader.unexpected()
    if (reader.takeWord('WITH') === undefined) return
    reader.expectWord('FILL')
    if (reader.takeWord('TO') !== undefined) reader.expression(scope)
    if (reader.takeWord('STEP') !== undefined) reader.expression(scope)
  })
}

/** Types that take arguments. */
const CONSTRUCTORS: ReadonlySet<string> = new Set(
  `nullable lowcardinality fixedstring decimal decimal32 decimal64 decimal128 decimal256 datetime datetime64 enum8 enum16 varchar array tuple
  map`.split(/\s+/),
)

/** A type after AS or `::`, such as `Nullable(Decimal(18, 4))`. */
export function readType(cursor: Cursor): void {
  const name = cursor.expectName()
  if (cursor.takeSymbol('(') === undefined) return
  if (!CONSTRUCTORS.has(foldName(name))) throw unknownType(name)
  cursor.nested(() => readList(cursor, () => readTypeArgument(cursor)))
  cursor.expectSymbol(')')
}

/** A number, a string, a string with its number, or a type. */
function readTypeArgument(cursor: Cursor): void {
  const kind = cursor.peek()?.kind
  if (kind !== 'number' && kind !== 'string') return readType(cursor)
  cursor.take()
  if (cursor.takeSymbol('=') === undefined) return
  cursor.takeSymbol('-')
  if (cursor.take().kind !== 'number') throw cursor.unexpected()
}

/**
 * Types of query parameters: words, and strings that end inside the braces, because the server reads quotes before braces. Identifier is refused: its
 * value would be a name that was not checked.
 */
const PARAMETER_TYPE = /^(?:[A-Za-z0-9_(), ]|'[A-Za-z0-9_/+-]*')+$/
const PARAMETER_TYPE_MAX = 200

export function readParameter(cursor: Cursor): void {
  const { value } = cursor.take()
  const type = value.slice(value.indexOf(':') + 1)
  if (type.length > PARAMETER_TYPE_MAX || !PARAMETER_TYPE.test(type) || foldName(type).includes('identifier'))
    throw unknownType(type, ' of a query parameter')
}

function unknownType(type: string, where = ''): QueryError {
  return new QueryError('UNKNOWN_TYPE', `Unknown type ${shownName(type)}${where}.`)
}
