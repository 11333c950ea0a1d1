import { type Cursor, clauseNotOffered } from './cursor.ts'
import type { Bound, Fill, Frame, OrderItem, Window } from './syntax.ts'

/** The inside of `OVER ( )`. */
export function parseWindow(cursor: Cursor): Window {
  const isName =
    !cursor.isWord('PARTITION') && !cursor.isWord('ORDER') && !cursor.isWord('ROWS') && !cursor.isWord('RANGE')
  const base = isName ? cursor.takeName() : undefined
  const partition = cursor.takeWords('PARTITION', 'BY') ? cursor.list(() => cursor.expression()) : []
  const order = cursor.takeWords('ORDER', 'BY') ? parseOrderBy(cursor) : []
  return { base, partition, order, frame: parseFrame(cursor) }
}

function parseFrame(cursor: Cursor): Frame | undefined {
  if (cursor.isWord('GROUPS')) throw clauseNotOffered('GROUPS in a window', cursor.position, 'Use ROWS or RANGE.')
  const mode = cursor.takeOneOf('ROWS', 'RANGE')
  if (mode !== 'ROWS' && mode !== 'RANGE') return undefined
  if (!cursor.takeWords('BETWEEN')) return { mode, from: parseBound(cursor), to: { kind: 'CURRENT ROW' } }
  const from = parseBound(cursor)
  cursor.expectWord('AND')
  return { mode, from, to: parseBound(cursor) }
}

function parseBound(cursor: Cursor): Bound {
  if (cursor.takeWords('CURRENT', 'ROW')) return { kind: 'CURRENT ROW' }
  if (cursor.takeWords('UNBOUNDED'))
    return {
      kind: cursor.takeWords('PRECEDING')
        ? 'UNBOUNDED PRECEDING'
        : (cursor.expectWord('FOLLOWING'), 'UNBOUNDED FOLLOWING'),
    }
  const offset = cursor.expression()
  if (cursor.takeWords('PRECEDING')) return { kind: 'PRECEDING', offset }
  cursor.expectWord('FOLLOWING')
  return { kind: 'FOLLOWING', offset }
}

/** The items after ORDER BY. */
export function parseOrderBy(cursor: Cursor): OrderItem[] {
  return cursor.list(() => {
    const of = cursor.expression()
    const direction = cursor.takeOneOf('ASC', 'DESC', 'ASCENDING', 'DESCENDING') ?? 'ASC'
    const nulls = cursor.takeWords('NULLS') && cursor.takeOneOf('FIRST', 'LAST') === 'FIRST' ? 'FIRST' : 'LAST'
    if (cursor.isWord('COLLATE')) throw cursor.unexpected()
    return { of, isDescending: direction.startsWith('DESC'), nulls, fill: parseFill(cursor) }
  })
}

function parseFill(cursor: Cursor): Fill | undefined {
  if (!cursor.takeWords('WITH', 'FILL')) return undefined
  const from = cursor.takeWords('FROM') ? cursor.expression() : undefined
  const to = cursor.takeWords('TO') ? cursor.expression() : undefined
  const step = cursor.takeWords('STEP') ? cursor.expression() : undefined
  if (cursor.isWord('STALENESS')) throw clauseNotOffered('STALENESS', cursor.position)
  return { from, to, step }
}
