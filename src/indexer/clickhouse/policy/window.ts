import { type Reader, readExpressions, readList, type Scope } from './grammar.ts'

/** What stands in the parentheses after OVER, or in the WINDOW clause. */
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

/** After ORDER. WITH FILL comes without FROM, which would look like a table. */
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
