import { QueryError } from '../query/error.ts'
import type { Token } from '../query/sql-tokens.ts'
import { TREE_DEPTH_MAX, treeTooDeep } from '../query/tree-limits.ts'
import { Cursor, clauseNotOffered } from './cursor.ts'
import { parseExpression } from './parse-expression.ts'
import { parseSource } from './parse-source.ts'
import { parseOrderBy, parseWindow } from './parse-window.ts'
import type { Expression, GroupBy, Query, Select, SetOperation, Window, With } from './syntax.ts'

/** Reads one SELECT. Throws QueryError with the position of what is not offered. */
export function parseSelect(tokens: readonly Token[]): Query {
  const cursor = new Cursor(tokens, { query: parseQuery, expression: parseExpression })
  if (cursor.peek() === undefined) throw new QueryError('SYNTAX_ERROR', 'Empty query.')
  const query = parseQuery(cursor)
  if (cursor.peek() !== undefined) throw cursor.unexpected()
  return query
}

/** INTERSECT binds tighter than UNION and EXCEPT. */
function parseQuery(cursor: Cursor): Query {
  return cursor.nested(() => {
    const isBare = !cursor.isSymbol('(')
    let commons: readonly With[] | undefined
    let terms = 0
    const term = (): Query => {
      if (++terms > TREE_DEPTH_MAX) throw treeTooDeep()
      const query = parseTerm(cursor)
      if (commons !== undefined) return shareWith(commons, query)
      commons = isBare && query.kind === 'select' ? query.with : []
      return query
    }
    return parseOperators(cursor, ['UNION', 'EXCEPT'], () => parseOperators(cursor, ['INTERSECT'], term))
  })
}

type Operator = 'UNION' | 'EXCEPT' | 'INTERSECT'

function parseOperators(cursor: Cursor, operators: readonly Operator[], operand: () => Query): Query {
  let left = operand()
  for (;;) {
    const { position: at } = cursor
    const word = cursor.takeOneOf(...operators)
    if (word === undefined) return left
    const kind = cursor.takeOneOf('ALL', 'DISTINCT')
    if (word === 'UNION' && kind === undefined)
      throw new QueryError('SYNTAX_ERROR', `Syntax error at position ${at}: write UNION ALL or UNION DISTINCT.`)
    // EXCEPT and INTERSECT keep repeated rows unless DISTINCT is written (except_default_mode, intersect_default_mode).
    const operator = `${word}${kind === 'DISTINCT' ? '' : ' ALL'}` as SetOperation['operator']
    left = { kind: 'set', operator, left, right: operand(), at }
  }
}

/** Common table expressions of the first SELECT are in scope for the others. */
function shareWith(commons: readonly With[], query: Query): Query {
  if (commons.length === 0) return query
  // Not copied without need: there may be thousands of both.
  if (query.kind === 'select')
    return { ...query, with: query.with.length === 0 ? commons : [...commons, ...query.with] }
  return { ...query, left: shareWith(commons, query.left), right: shareWith(commons, query.right) }
}

function parseTerm(cursor: Cursor): Query {
  if (cursor.isSymbol('(')) return cursor.inParentheses(() => parseQuery(cursor))
  if (cursor.isWord('VALUES')) return parseValues(cursor)
  return parseOne(cursor)
}

/** `VALUES (1, 'a'), (2, 'b')` as a statement. */
function parseValues(cursor: Cursor): Query {
  const { at } = cursor.take()
  const rows = cursor.list(() => cursor.inParentheses(() => cursor.list(() => parseExpression(cursor))))
  if (rows.length > TREE_DEPTH_MAX) throw treeTooDeep()
  const [first, ...rest] = rows.map((items): Query => plainSelect(items, at))
  return rest.reduce<Query>((left, right) => ({ kind: 'set', operator: 'UNION ALL', left, right, at }), first as Query)
}

function plainSelect(items: readonly Expression[], at: number): Select {
  return {
    kind: 'select',
    at,
    with: [],
    isDistinct: false,
    items,
    where: [],
    hasTotals: false,
    windows: new Map(),
    orderBy: [],
    isWithTies: false,
  }
}

function parseOne(cursor: Cursor): Select {
  const { position: at } = cursor
  const commons = cursor.takeWords('WITH') ? parseWith(cursor) : []
  const early = cursor.takeWords('FROM') ? parseSource(cursor) : undefined
  if (early !== undefined && !cursor.isWord('SELECT')) {
    const star: Expression = { kind: 'star', except: [], replace: [], apply: [], at }
    return parseClauses(cursor, { ...plainSelect([star], at), with: commons, from: early })
  }
  cursor.expectWord('SELECT')
  const isDistinct = cursor.takeWords('DISTINCT')
  const distinctOn =
    isDistinct && cursor.takeWords('ON')
      ? cursor.inParentheses(() => cursor.list(() => parseExpression(cursor)))
      : undefined
  if (!isDistinct) cursor.takeWords('ALL')
  const top = parseTop(cursor)
  const items = parseItems(cursor)
  const from = early ?? (cursor.takeWords('FROM') ? parseSource(cursor) : undefined)
  return parseClauses(cursor, { ...plainSelect(items, at), with: commons, isDistinct, distinctOn, from, limit: top })
}

/** `SELECT TOP 5 …`. */
function parseTop(cursor: Cursor): Expression | undefined {
  if (!cursor.isWord('TOP') || cursor.peek(1)?.kind !== 'number') return undefined
  cursor.take()
  const { text, at } = cursor.take()
  return { kind: 'number', text, at }
}

/** The columns; ClickHouse takes a comma after the last one. */
function parseItems(cursor: Cursor): Expression[] {
  const items = [parseItem(cursor)]
  while (cursor.takeSymbol(',')) {
    if (cursor.isWord('FROM')) break
    items.push(parseItem(cursor))
  }
  return items
}

/** An expression; its alias may follow without AS. */
function parseItem(cursor: Cursor): Expression {
  const of = parseExpression(cursor)
  if (of.kind === 'alias' || of.kind === 'star') return of
  const name = cursor.takeName()
  return name === undefined ? of : { kind: 'alias', of, name, at: of.at }
}

function parseWith(cursor: Cursor): With[] {
  return cursor.list(() => cursor.countingTables(() => parseCommon(cursor)))
}

function parseCommon(cursor: Cursor): With {
  const { position: at } = cursor
  if (cursor.isWord('RECURSIVE')) throw cursor.unexpected()
  const name = cursor.peek()
  if ((name?.kind === 'word' || name?.kind === 'name') && cursor.peek(1)?.upper === 'AS' && cursor.isSymbol('(', 2)) {
    cursor.take()
    cursor.take()
    return { name: name.value, query: cursor.inParentheses(() => parseQuery(cursor)), at }
  }
  const of = parseItem(cursor)
  if (of.kind !== 'alias') throw cursor.unexpected('AS and a name')
  return { name: of.name, of: of.of, at }
}

function parseClauses(cursor: Cursor, head: Select): Select {
  const where: Expression[] = []
  if (cursor.takeWords('PREWHERE')) where.push(parseExpression(cursor))
  if (cursor.takeWords('WHERE')) where.push(parseExpression(cursor))
  const groupBy = cursor.takeWords('GROUP', 'BY') ? parseGroupBy(cursor) : undefined
  const hasTotals = cursor.takeWords('WITH', 'TOTALS')
  const having = cursor.takeWords('HAVING') ? parseExpression(cursor) : undefined
  const windows = cursor.takeWords('WINDOW') ? parseWindows(cursor) : head.windows
  const qualify = cursor.takeWords('QUALIFY') ? parseExpression(cursor) : undefined
  const orderBy = cursor.takeWords('ORDER', 'BY') ? (cursor.takeWords('ALL') ? 'all' : parseOrderBy(cursor)) : []
  if (cursor.isWord('INTERPOLATE')) throw cursor.unexpected()
  return { ...head, where, groupBy, hasTotals, having, windows, qualify, orderBy, ...parseLimits(cursor, head.limit) }
}

function parseGroupBy(cursor: Cursor): GroupBy {
  const { position: at } = cursor
  if (cursor.takeWords('ALL')) return { kind: 'all', keys: [] }
  if (cursor.takeWords('GROUPING', 'SETS')) {
    const sets = cursor.inParentheses(() => cursor.list(() => parseSet(cursor)))
    return { kind: 'sets', keys: sets.flat(), sets }
  }
  const word = cursor.isSymbol('(', 1) ? cursor.takeOneOf('ROLLUP', 'CUBE') : undefined
  if (word !== undefined)
    return {
      kind: word === 'CUBE' ? 'cube' : 'rollup',
      keys: cursor.inParentheses(() => cursor.list(() => parseExpression(cursor))),
    }
  const keys = cursor.list(() => parseExpression(cursor))
  if (cursor.takeWords('WITH', 'ROLLUP')) return { kind: 'rollup', keys }
  if (cursor.takeWords('WITH', 'CUBE')) return { kind: 'cube', keys }
  if (cursor.isWord('WITH') && !cursor.isWord('WITH', 'TOTALS'))
    throw clauseNotOffered(
      `WITH ${cursor.peek(1)?.upper ?? ''}`,
      at,
      'After GROUP BY: WITH ROLLUP, WITH CUBE, WITH TOTALS.',
    )
  return { kind: 'list', keys }
}

function parseSet(cursor: Cursor): Expression[] {
  if (!cursor.isSymbol('(')) return [parseExpression(cursor)]
  return cursor.inParentheses(() => (cursor.isSymbol(')') ? [] : cursor.list(() => parseExpression(cursor))))
}

function parseWindows(cursor: Cursor): ReadonlyMap<string, Window> {
  return new Map(
    cursor.list(() => {
      const name = cursor.expectName()
      cursor.expectWord('AS')
      return [name, cursor.inParentheses(() => parseWindow(cursor))] as const
    }),
  )
}

type Limits = Pick<Select, 'limitBy' | 'limit' | 'offset' | 'isWithTies'>

/** `LIMIT n`, `LIMIT offset, n`, `LIMIT n OFFSET m`, `LIMIT n BY …` before one of them, OFFSET and FETCH. */
function parseLimits(cursor: Cursor, top: Expression | undefined): Limits {
  let limits: Limits = { limit: top, isWithTies: false }
  while (cursor.takeWords('LIMIT')) {
    if (limits.limit !== undefined) throw cursor.unexpected()
    const first = parseExpression(cursor)
    let part: { readonly count: Expression; readonly offset?: Expression | undefined } = { count: first }
    if (cursor.takeSymbol(',')) part = { count: parseExpression(cursor), offset: first }
    else if (cursor.takeWords('OFFSET')) part = { count: first, offset: parseExpression(cursor) }
    if (cursor.takeWords('BY')) {
      if (limits.limitBy !== undefined) throw cursor.unexpected()
      if (cursor.isWord('ALL')) throw clauseNotOffered('LIMIT BY ALL', cursor.position, 'Name the columns.')
      limits = { ...limits, limitBy: { ...part, keys: cursor.list(() => parseExpression(cursor)) } }
    } else limits = { ...limits, limit: part.count, offset: part.offset, isWithTies: cursor.takeWords('WITH', 'TIES') }
  }
  if (limits.offset === undefined && cursor.takeWords('OFFSET')) {
    limits = { ...limits, offset: parseExpression(cursor) }
    cursor.takeOneOf('ROW', 'ROWS')
  }
  if (!cursor.isWord('FETCH')) return limits
  cursor.take()
  if (cursor.takeOneOf('FIRST', 'NEXT') === undefined) throw cursor.unexpected('FIRST')
  const count = parseExpression(cursor)
  if (cursor.takeOneOf('ROW', 'ROWS') === undefined) throw cursor.unexpected('ROWS')
  if (cursor.takeWords('WITH', 'TIES')) return { ...limits, limit: count, isWithTies: true }
  cursor.expectWord('ONLY')
  return { ...limits, limit: count }
}
