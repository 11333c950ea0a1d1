import { type Cursor, clauseNotOffered } from './cursor.ts'
import { parseWindow } from './parse-window.ts'
import { type Alias, type Call, call, type Expression, type Star } from './syntax.ts'

/** What follows the name of a function: its arguments, FILTER and OVER. */
export function parseCallEnd(cursor: Cursor, name: string, at: number): Expression {
  const lower = name.toLowerCase()
  const special = SPECIAL[lower]
  if (special !== undefined && Object.hasOwn(SPECIAL, lower)) {
    const parsed = special(cursor, at)
    if (parsed !== undefined) return parsed
  }
  if (lower === 'columns') return parseColumns(cursor, at)
  let parameters: readonly Expression[] | undefined
  let { args, isDistinct } = parseArguments(cursor)
  if (cursor.isSymbol('(')) {
    parameters = args
    ;({ args, isDistinct } = parseArguments(cursor))
  }
  const filter = cursor.isWord('FILTER') && cursor.isSymbol('(', 1) ? parseFilter(cursor) : undefined
  const made: Call = { kind: 'call', name, parameters, args, isDistinct, filter, at }
  if (cursor.isWord('IGNORE', 'NULLS') || cursor.isWord('RESPECT', 'NULLS'))
    throw clauseNotOffered('IGNORE NULLS', cursor.position)
  if (!cursor.takeWords('OVER')) return made
  const over = cursor.isSymbol('(') ? cursor.inParentheses(() => parseWindow(cursor)) : cursor.expectName()
  return { ...made, over }
}

function parseArguments(cursor: Cursor): { args: readonly Expression[]; isDistinct: boolean } {
  return cursor.inParentheses(() => {
    const isDistinct = cursor.takeWords('DISTINCT')
    if (cursor.isSymbol(')')) return { args: [], isDistinct }
    const args = cursor.list(() => cursor.expression())
    if (cursor.isWord('ORDER', 'BY')) throw clauseNotOffered('ORDER BY inside of a function', cursor.position)
    return { args, isDistinct }
  })
}

function parseFilter(cursor: Cursor): Expression {
  cursor.take()
  return cursor.inParentheses(() => {
    cursor.expectWord('WHERE')
    return cursor.expression()
  })
}

/** Calls with keywords between their arguments. Each returns undefined, with nothing read, for the form with commas. */
const SPECIAL: Readonly<Record<string, (cursor: Cursor, at: number) => Expression | undefined>> = {
  cast(cursor, at) {
    return cursor.inParentheses(() => {
      const of = cursor.expression()
      if (of.kind === 'alias') return { kind: 'cast', of: of.of, type: typeAfter(cursor, of.name), at }
      cursor.expectSymbol(',')
      const type = cursor.take()
      if (type.kind !== 'string') throw cursor.unexpected('the name of a type in quotes')
      return { kind: 'cast', of, type: type.value, at }
    })
  },
  extract(cursor, at) {
    if (cursor.peek(1)?.kind !== 'word' || cursor.peek(2)?.upper !== 'FROM') return undefined
    return cursor.inParentheses(() => {
      const unit = cursor.take().upper
      cursor.take()
      const name = `to${unit[0]}${unit.slice(1).toLowerCase()}`
      const other: Readonly<Record<string, string>> = { toDay: 'toDayOfMonth', toWeek: 'toISOWeek' }
      return call(other[name] ?? name, [cursor.expression()], at)
    })
  },
  substring: (cursor, at) => parseSubstring(cursor, at),
  position(cursor, at) {
    return cursor.inParentheses(() => {
      const args = cursor.list(() => cursor.expression())
      const [first] = args
      const isIn = args.length === 1 && first?.kind === 'in' && 'length' in first.set && first.set.length === 1
      return call('position', isIn ? [(first.set as readonly Expression[])[0] as Expression, first.value] : args, at)
    })
  },
  trim(cursor, at) {
    const side = cursor.peek(1)?.upper
    if (side !== 'BOTH' && side !== 'LEADING' && side !== 'TRAILING') return undefined
    return cursor.inParentheses(() => {
      cursor.take()
      const chars = cursor.isWord('FROM') ? [] : [cursor.expression()]
      cursor.expectWord('FROM')
      const name = side === 'BOTH' ? 'trimBoth' : side === 'LEADING' ? 'trimLeft' : 'trimRight'
      return call(name, [cursor.expression(), ...chars], at)
    })
  },
}
for (const name of [
  'datediff',
  'date_diff',
  'timestampdiff',
  'timestamp_diff',
  'age',
  'dateadd',
  'date_add',
  'datesub',
  'date_sub',
  'date_trunc',
  'datetrunc',
])
  (SPECIAL as Record<string, (cursor: Cursor, at: number) => Expression | undefined>)[name] = (cursor, at) =>
    parseWithUnit(cursor, name, at)

/** `CAST(x AS T)` is read as an expression with an alias; arguments of the type follow. */
function typeAfter(cursor: Cursor, name: string): string {
  if (!cursor.isSymbol('(')) return name
  let text = name
  let last = name
  let depth = 0
  do {
    const token = cursor.take()
    if (token.text === '(') depth++
    if (token.text === ')') depth--
    // Only the last token is looked at: the type may be as long as the statement.
    text += token.text === ',' ? ', ' : `${/[\w`"]$/.test(last) && token.kind === 'word' ? ' ' : ''}${token.text}`
    last = token.text
  } while (depth > 0)
  return text
}

function parseSubstring(cursor: Cursor, at: number): Expression | undefined {
  return cursor.inParentheses(() => {
    const args = [cursor.expression()]
    if (cursor.takeWords('FROM')) {
      args.push(cursor.expression())
      if (cursor.takeWords('FOR')) args.push(cursor.expression())
    } else while (cursor.takeSymbol(',')) args.push(cursor.expression())
    return call('substring', args, at)
  })
}

/** `dateDiff(day, a, b)`: the unit may be a bare word. */
function parseWithUnit(cursor: Cursor, name: string, at: number): Expression | undefined {
  const unit = cursor.peek(1)
  if (unit?.kind !== 'word' || !cursor.isSymbol(',', 2)) return undefined
  return cursor.inParentheses(() => {
    cursor.take()
    cursor.take()
    const args = cursor.list(() => cursor.expression())
    return call(name, [{ kind: 'string', text: unit.value.toLowerCase(), at: unit.at }, ...args], at)
  })
}

function parseColumns(cursor: Cursor, at: number): Expression {
  const pattern = cursor.inParentheses(() => cursor.take())
  if (pattern.kind !== 'string')
    throw clauseNotOffered('COLUMNS of a list', pattern.at, "Use COLUMNS('regular expression').")
  return parseStarEnd(cursor, { at, pattern: pattern.value })
}

/** EXCEPT, REPLACE and APPLY after `*` or COLUMNS. */
export function parseStarEnd(cursor: Cursor, head: Pick<Star, 'at' | 'table' | 'pattern'>): Star {
  const except: string[] = []
  const replace: Alias[] = []
  const apply: string[] = []
  for (;;) {
    if (
      cursor.isWord('EXCEPT') &&
      !['SELECT', 'ALL', 'DISTINCT', 'WITH'].includes(cursor.peek(1)?.upper ?? '') &&
      !isQueryAfter(cursor)
    ) {
      cursor.take()
      if (cursor.isSymbol('(')) except.push(...cursor.inParentheses(() => cursor.list(() => cursor.expectName())))
      else except.push(cursor.expectName())
    } else if (cursor.takeWords('REPLACE')) {
      const read = (): Alias => {
        const item = cursor.expression()
        if (item.kind !== 'alias') throw cursor.unexpected('AS')
        return item
      }
      replace.push(...(cursor.isSymbol('(') ? cursor.inParentheses(() => cursor.list(read)) : [read()]))
    } else if (cursor.takeWords('APPLY')) {
      const name = cursor.isSymbol('(') ? cursor.inParentheses(() => cursor.expectName()) : cursor.expectName()
      apply.push(name)
    } else return { kind: 'star', ...head, except, replace, apply }
  }
}

/** `SELECT * EXCEPT (SELECT …)` is a set operation. */
function isQueryAfter(cursor: Cursor): boolean {
  return cursor.isSymbol('(', 1) && cursor.peek(2)?.upper === 'SELECT'
}
