import { QueryError } from '../../query/error.ts'
import { foldName, shownName } from '../../query/names.ts'
import type { Cursor } from './cursor.ts'
import { readList } from './grammar.ts'

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
  cursor.nested(() => readList(cursor, () => readArgument(cursor)))
  cursor.expectSymbol(')')
}

/** A number, a text, a text with its number, or a type. */
function readArgument(cursor: Cursor): void {
  const kind = cursor.peek()?.kind
  if (kind !== 'number' && kind !== 'string') return readType(cursor)
  cursor.take()
  if (cursor.takeSymbol('=') === undefined) return
  cursor.takeSymbol('-')
  if (cursor.take().kind !== 'number') throw cursor.unexpected()
}

/**
 * Types of parameters: words, with texts in quotes that end inside of the braces, for the server reads quotes before braces. An Identifier would be a
 * name that is not judged.
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
