import { TREE_DEPTH_MAX, treeTooDeep } from '../query/tree-limits.ts'
import { type Cursor, clauseNotOffered, qualifiedFunction } from './cursor.ts'
import type { Expression, Join, Source } from './syntax.ts'

/** Tables, subqueries, their joins and ARRAY JOIN. */
export function parseSource(cursor: Cursor): Source {
  let left = parseTable(cursor)
  for (let joins = 0; ; joins++) {
    if (joins > TREE_DEPTH_MAX) throw treeTooDeep()
    const { position: at } = cursor
    if (cursor.takeSymbol(','))
      left = { kind: 'join', left, right: parseTable(cursor), side: 'CROSS', strictness: 'ALL', at }
    else {
      const next = parseArrayJoin(cursor, left) ?? parseJoin(cursor, left)
      if (next === undefined) return left
      left = next
    }
  }
}

function parseArrayJoin(cursor: Cursor, left: Source): Source | undefined {
  const { position: at } = cursor
  const isLeft = cursor.isWord('LEFT', 'ARRAY', 'JOIN')
  if (isLeft || cursor.isWord('INNER', 'ARRAY', 'JOIN')) cursor.take()
  if (!cursor.takeWords('ARRAY', 'JOIN')) return undefined
  const arrays = cursor.list((): Expression => {
    const of = cursor.expression()
    const name = of.kind === 'alias' ? undefined : cursor.takeName()
    return name === undefined ? of : { kind: 'alias', of, name, at: of.at }
  })
  return { kind: 'arrays', left, isLeft, arrays, at }
}

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
] as const

function parseJoin(cursor: Cursor, left: Source): Join | undefined {
  const { position: at, mark } = cursor
  const words = new Set<string>()
  for (let word = cursor.takeOneOf(...JOIN_WORDS); word !== undefined; word = cursor.takeOneOf(...JOIN_WORDS))
    words.add(word)
  if (!cursor.takeWords('JOIN')) {
    if (words.size > 0) cursor.back(mark)
    return undefined
  }
  const right = parseTable(cursor)
  const side = (['LEFT', 'RIGHT', 'FULL', 'CROSS'] as const).find((each) => words.has(each)) ?? 'INNER'
  const strictness = (['ANY', 'SEMI', 'ANTI', 'ASOF'] as const).find((each) => words.has(each)) ?? 'ALL'
  const isHalf = strictness === 'SEMI' || strictness === 'ANTI'
  if (isHalf && side === 'FULL') throw clauseNotOffered(`${strictness} FULL JOIN`, at)
  const head = { kind: 'join', left, right, side: isHalf && side === 'INNER' ? 'LEFT' : side, strictness, at } as const
  if (cursor.takeWords('ON')) return { ...head, on: cursor.expression() }
  if (cursor.takeWords('USING')) {
    if (cursor.isSymbol('('))
      return { ...head, using: cursor.inParentheses(() => cursor.list(() => cursor.expectName())) }
    const using = [cursor.expectName()]
    while (cursor.isSymbol(',')) {
      cursor.take()
      using.push(cursor.expectName())
    }
    return { ...head, using }
  }
  if (side === 'CROSS') return head
  throw cursor.unexpected('ON or USING')
}

function parseTable(cursor: Cursor): Source {
  const { position: at } = cursor
  if (cursor.isQueryStart()) {
    const query = cursor.inParentheses(() => cursor.query())
    return { kind: 'query', query, at, ...parseAlias(cursor) }
  }
  if (cursor.isSymbol('(')) {
    const inner = cursor.inParentheses(() => parseSource(cursor))
    const { alias } = parseAlias(cursor)
    return alias === undefined || inner.kind === 'join' || inner.kind === 'arrays' ? inner : { ...inner, alias }
  }
  const token = cursor.peek()
  if (token?.kind === 'parameter') {
    cursor.take()
    cursor.countTable()
    return { kind: 'table', path: [token.text], at, ...parseAlias(cursor) }
  }
  if (token?.kind === 'string') {
    cursor.take()
    cursor.countTable()
    return { kind: 'table', path: [token.value], at, ...parseAlias(cursor) }
  }
  const path = [cursor.expectName()]
  if (cursor.isSymbol('(')) {
    const args = cursor.inParentheses(() => (cursor.isSymbol(')') ? [] : cursor.list(() => cursor.expression())))
    if (path[0]?.toLowerCase() !== 'values') cursor.countTable()
    return { kind: 'function', name: path[0] as string, args, at, ...parseAlias(cursor) }
  }
  while (cursor.takeSymbol('.')) path.push(nameAfterPoint(cursor))
  if (cursor.isSymbol('(')) throw qualifiedFunction(path, at)
  cursor.countTable()
  return { kind: 'table', path, at, ...parseAlias(cursor) }
}

function nameAfterPoint(cursor: Cursor): string {
  const token = cursor.take()
  if (token.kind !== 'word' && token.kind !== 'name') throw cursor.unexpected('a name')
  return token.value
}

/** The alias of a table, and the words that may follow it. */
function parseAlias(cursor: Cursor): { alias?: string | undefined } {
  cursor.takeWords('FINAL')
  const alias = cursor.takeWords('AS') ? cursor.expectName() : cursor.takeName()
  cursor.takeWords('FINAL')
  if (cursor.isWord('SAMPLE') || cursor.isWord('TABLESAMPLE')) throw cursor.unexpected()
  if (alias !== undefined && cursor.isSymbol('('))
    throw clauseNotOffered('column names after a table alias', cursor.position, 'Name the columns in the SELECT.')
  return { alias }
}
