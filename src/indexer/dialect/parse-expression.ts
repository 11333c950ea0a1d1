import { QueryError } from '../query/error.ts'
import { shownName } from '../query/sql-tokens.ts'
import { type Cursor, qualifiedFunction } from './cursor.ts'
import { castLiteral, negativeLiteral } from './expression/cast-literal.ts'
import { limitDepth, sizeOf } from './expression/depth.ts'
import { parseCallEnd, parseStarEnd } from './parse-call.ts'
import { call, type Expression, type Identifier, type Literal, type Query } from './syntax.ts'

/** Binary operators, loosest first; each is a call of the function that ClickHouse writes for it. */
const LEVELS = [
  { word: 'OR', name: 'or' },
  { word: 'XOR', name: 'xor' },
  { word: 'AND', name: 'and' },
]
const COMPARISONS: Readonly<Record<string, string>> = {
  '=': 'equals',
  '==': 'equals',
  '!=': 'notEquals',
  '<>': 'notEquals',
  '<': 'less',
  '>': 'greater',
  '<=': 'lessOrEquals',
  '>=': 'greaterOrEquals',
  '<=>': 'isNotDistinctFrom',
  LIKE: 'like',
  ILIKE: 'ilike',
  REGEXP: 'match',
}
const SUMS: Readonly<Record<string, string>> = { '+': 'plus', '-': 'minus' }
const PRODUCTS: Readonly<Record<string, string>> = {
  '*': 'multiply',
  '/': 'divide',
  '%': 'modulo',
  DIV: 'intDiv',
  MOD: 'modulo',
}

/** An expression, possibly with an alias after AS. */
export function parseExpression(cursor: Cursor): Expression {
  const { position: at } = cursor
  const of = parseOperation(cursor)
  return cursor.takeWords('AS') ? { kind: 'alias', of, name: cursor.expectAnyName(), at } : of
}

/** An expression without an alias: a lambda, or an operation. */
function parseOperation(cursor: Cursor): Expression {
  return cursor.nested(() => parseLambda(cursor) ?? parseTernary(cursor))
}

function parseLambda(cursor: Cursor): Expression | undefined {
  const { position: at, mark } = cursor
  const names: string[] = []
  if (cursor.peek()?.kind === 'word' && cursor.isSymbol('->', 1)) names.push(cursor.take().value)
  else if (cursor.isSymbol('(')) {
    for (let ahead = 1; ; ahead += 2) {
      const name = cursor.peek(ahead)
      if (name?.kind !== 'word') return undefined
      names.push(name.value)
      if (cursor.isSymbol(')', ahead + 1)) {
        if (!cursor.isSymbol('->', ahead + 2)) return undefined
        for (let taken = 0; taken < ahead + 2; taken++) cursor.take()
        break
      }
      if (!cursor.isSymbol(',', ahead + 1)) return undefined
    }
  } else return undefined
  if (!cursor.takeSymbol('->')) {
    cursor.back(mark)
    return undefined
  }
  return { kind: 'lambda', names, body: parseOperation(cursor), at }
}

function parseTernary(cursor: Cursor): Expression {
  const { position: at } = cursor
  const condition = parseLevel(cursor, 0)
  if (!cursor.takeSymbol('?')) return condition
  const yes = parseOperation(cursor)
  cursor.expectSymbol(':')
  return call('if', [condition, yes, parseOperation(cursor)], at)
}

function parseLevel(cursor: Cursor, level: number): Expression {
  const operator = LEVELS[level]
  if (operator === undefined) return parseNot(cursor)
  let left = parseLevel(cursor, level + 1)
  const rest: Expression[] = []
  const { position: first } = cursor
  for (let at = first; cursor.takeWords(operator.word); at = cursor.position) {
    const right = parseLevel(cursor, level + 1)
    if (operator.name === 'xor') left = limitDepth(call('xor', [left, right], at))
    else rest.push(right)
  }
  return joined(operator.name, left, rest, first)
}

/** `a AND b AND c` is one call in ClickHouse, also with parentheses around the first two. */
function joined(name: string, left: Expression, rest: readonly Expression[], at: number): Expression {
  if (rest.length === 0) return left
  const isChain = left.kind === 'call' && left.name === name && chained.has(left)
  const made = limitDepth(call(name, [...(isChain ? left.args : [left]), ...rest], isChain ? left.at : at))
  chained.add(made)
  return made
}

/** Calls that were written as operators, not as functions. */
const chained = new WeakSet<Expression>()

function parseNot(cursor: Cursor): Expression {
  const { position: at } = cursor
  if (cursor.isWord('NOT')) {
    cursor.take()
    return cursor.nested(() => call('not', [parseNot(cursor)], at))
  }
  return parseComparison(cursor)
}

function parseComparison(cursor: Cursor): Expression {
  let left = parseChain(cursor, SUMS_THEN_CONCAT)
  for (;;) {
    const { position: at } = cursor
    const token = cursor.peek()
    if (token === undefined) return left
    const key = token.kind === 'symbol' ? token.text : token.upper
    if (key !== '' && Object.hasOwn(COMPARISONS, key)) {
      cursor.take()
      left = limitDepth(call(COMPARISONS[key] as string, [left, parseChain(cursor, SUMS_THEN_CONCAT)], at))
    } else if (cursor.takeWords('IS')) {
      const isNot = cursor.takeWords('NOT')
      if (cursor.takeWords('DISTINCT', 'FROM')) {
        const right = parseChain(cursor, SUMS_THEN_CONCAT)
        left = limitDepth(call(isNot ? 'isNotDistinctFrom' : 'isDistinctFrom', [left, right], at))
      } else {
        cursor.expectWord('NULL')
        left = limitDepth(call(isNot ? 'isNotNull' : 'isNull', [left], at))
      }
    } else {
      const next = parseNegatable(cursor, left, at)
      if (next === undefined) return left
      left = limitDepth(next)
    }
  }
}

/** BETWEEN, IN and LIKE, possibly after NOT. */
function parseNegatable(cursor: Cursor, left: Expression, at: number): Expression | undefined {
  const { mark } = cursor
  const isNot = cursor.takeWords('NOT')
  if (cursor.takeWords('BETWEEN')) {
    const low = parseChain(cursor, SUMS_THEN_CONCAT)
    cursor.expectWord('AND')
    const high = parseChain(cursor, SUMS_THEN_CONCAT)
    cursor.countCopy(sizeOf(left))
    if (!isNot)
      return call('and', [call('greaterOrEquals', [left, low], at), call('lessOrEquals', [left, high], at)], at)
    return call('or', [call('less', [left, low], at), call('greater', [left, high], at)], at)
  }
  if (cursor.takeWords('GLOBAL') || cursor.isWord('IN')) {
    const isNotGlobal = cursor.takeWords('NOT')
    if (cursor.takeWords('IN')) return parseIn(cursor, left, isNot || isNotGlobal, at)
  }
  const like = isNot ? cursor.takeOneOf('LIKE', 'ILIKE') : undefined
  if (like !== undefined)
    return call(like === 'LIKE' ? 'notLike' : 'notILike', [left, parseChain(cursor, SUMS_THEN_CONCAT)], at)
  cursor.back(mark)
  return undefined
}

function parseIn(cursor: Cursor, value: Expression, isNot: boolean, at: number): Expression {
  if (cursor.isQueryStart()) return { kind: 'in', value, isNot, set: cursor.inParentheses(() => cursor.query()), at }
  const set = parseChain(cursor, SUMS_THEN_CONCAT)
  if (set.kind === 'call' && (set.name === 'tuple' || set.name === 'array'))
    return { kind: 'in', value, isNot, set: set.args, at }
  if (set.kind === 'identifier') return { kind: 'in', value, isNot, set: selectAll(set), at }
  return { kind: 'in', value, isNot, set: [set], at }
}

/** `x IN table` reads the only column of the table. */
function selectAll({ path, at }: Identifier): Query {
  const star = { kind: 'star', except: [], replace: [], apply: [], at } as const
  const rest = {
    with: [],
    isDistinct: false,
    where: [],
    hasTotals: false,
    windows: new Map(),
    orderBy: [],
    isWithTies: false,
  }
  return { kind: 'select', items: [star], from: { kind: 'table', path, at }, at, ...rest }
}

type Chain = { readonly operators: Readonly<Record<string, string>>; readonly next: (cursor: Cursor) => Expression }
const PRODUCT_CHAIN: Chain = { operators: PRODUCTS, next: parseUnary }
const SUM_CHAIN: Chain = { operators: SUMS, next: (cursor) => parseChain(cursor, PRODUCT_CHAIN) }
const SUMS_THEN_CONCAT: Chain = { operators: { '||': 'concat' }, next: (cursor) => parseChain(cursor, SUM_CHAIN) }

function parseChain(cursor: Cursor, chain: Chain): Expression {
  let left = chain.next(cursor)
  const rest: Expression[] = []
  for (let at = 0; ; ) {
    const token = cursor.peek()
    const key = token?.kind === 'symbol' ? token.text : token?.upper
    if (token === undefined || key === undefined || key === '' || !Object.hasOwn(chain.operators, key))
      return joined('concat', left, rest, at)
    cursor.take()
    at = token.at
    const name = chain.operators[key] as string
    const right = chain.next(cursor)
    if (name === 'concat') rest.push(right)
    else left = limitDepth(call(name, [left, right], at))
  }
}

function parseUnary(cursor: Cursor): Expression {
  const { position: at } = cursor
  if (cursor.takeSymbol('-')) {
    const next = cursor.peek()
    const of = cursor.nested(() => parseUnary(cursor))
    if (next?.kind === 'number' && of.kind === 'number') return { ...of, text: `-${of.text}`, at }
    const cast = next?.kind === 'number' ? negativeLiteral(of) : undefined
    return cast ?? call('negate', [of], at)
  }
  if (cursor.takeSymbol('+')) return parseUnary(cursor)
  if (cursor.takeWords('NOT')) return cursor.nested(() => call('not', [parseUnary(cursor)], at))
  return parsePostfix(cursor, parsePrimary(cursor))
}

function parsePostfix(cursor: Cursor, first: Expression): Expression {
  let of = first
  for (;;) {
    limitDepth(of)
    const { position: at } = cursor
    if (cursor.takeSymbol('[')) {
      of = call('arrayElement', [of, cursor.nested(() => parseOperation(cursor))], at)
      cursor.expectSymbol(']')
    } else if (cursor.takeSymbol('::')) of = { kind: 'cast', of, type: parseTypeText(cursor), at }
    else if (cursor.peek()?.kind === 'number' && /^\.\d+$/.test(cursor.peek()?.text ?? '')) {
      const text = cursor.take().text.slice(1)
      of = call('tupleElement', [of, { kind: 'number', text, at }], at)
    } else if (cursor.isSymbol('.') && of.kind !== 'identifier') {
      cursor.take()
      if (cursor.isSymbol('(', 1)) throw qualifiedFunction([cursor.take().value], at)
      of = call('tupleElement', [of, { kind: 'string', text: cursor.expectName(), at }], at)
    } else return of
  }
}

/** The text of a type, such as `Nullable(Decimal(18, 4))`. */
function parseTypeText(cursor: Cursor): string {
  const name = cursor.expectAnyName()
  if (!cursor.isSymbol('(')) return name
  const parts = cursor.inParentheses(() =>
    cursor.list(() => {
      const kind = cursor.peek()?.kind
      if (kind === 'number' || kind === 'string') {
        const token = cursor.take()
        if (cursor.takeSymbol('=')) cursor.take()
        return token.text
      }
      const isNamed = cursor.peek(1)?.kind === 'word'
      return isNamed ? `${cursor.expectAnyName()} ${parseTypeText(cursor)}` : parseTypeText(cursor)
    }),
  )
  return `${name}(${parts.join(', ')})`
}

function parsePrimary(cursor: Cursor): Expression {
  const { position: at } = cursor
  const token = cursor.peek()
  switch (token?.kind) {
    case 'number': {
      cursor.take()
      const literal = { kind: 'number', text: token.text, at } as const
      const { position } = cursor
      return cursor.takeSymbol('::') ? castLiteral(literal, parseTypeText(cursor), position) : literal
    }
    case 'string':
      cursor.take()
      return { kind: 'string', text: token.value, at }
    case 'parameter': {
      cursor.take()
      const colon = token.value.indexOf(':')
      return { kind: 'parameter', name: token.value.slice(0, colon), type: token.value.slice(colon + 1), at }
    }
    case 'symbol':
      return parseSymbol(cursor, at)
    case 'word':
    case 'name':
      return parseWord(cursor, at)
    default:
      throw cursor.unexpected()
  }
}

function parseSymbol(cursor: Cursor, at: number): Expression {
  if (cursor.isQueryStart())
    return { kind: 'subquery', query: cursor.inParentheses(() => cursor.query()), isExists: false, at }
  if (cursor.takeSymbol('(')) {
    if (cursor.takeSymbol(')')) return call('tuple', [], at)
    const items = cursor.nested(() => cursor.list(() => parseExpression(cursor)))
    cursor.expectSymbol(')')
    const [only] = items
    return items.length === 1 && only !== undefined ? only : call('tuple', items, at)
  }
  if (cursor.takeSymbol('[')) {
    const items = cursor.isSymbol(']') ? [] : cursor.nested(() => cursor.list(() => parseExpression(cursor)))
    cursor.expectSymbol(']')
    return call('array', items, at)
  }
  if (cursor.takeSymbol('*')) return parseStarEnd(cursor, { at })
  throw cursor.unexpected()
}

const isNaNOrInfinity = (upper: string): boolean => upper === 'NAN' || upper === 'INF'
const CONSTANTS: Readonly<Record<string, Literal['kind']>> = { NULL: 'null', TRUE: 'bool', FALSE: 'bool' }
const UNITS = /^(SECOND|MINUTE|HOUR|DAY|WEEK|MONTH|QUARTER|YEAR|MILLISECOND|MICROSECOND)S?$/

function parseWord(cursor: Cursor, at: number): Expression {
  const token = cursor.peek()
  const upper = token?.upper ?? ''
  if (Object.hasOwn(CONSTANTS, upper) && !cursor.isSymbol('(', 1)) {
    cursor.take()
    return { kind: CONSTANTS[upper] as Literal['kind'], text: upper.toLowerCase(), at }
  }
  if (isNaNOrInfinity(upper) && token?.kind === 'word' && !cursor.isSymbol('(', 1) && !cursor.isSymbol('.', 1)) {
    cursor.take()
    return { kind: 'number', text: upper.toLowerCase(), at }
  }
  if (upper === 'CASE') return parseCase(cursor)
  if (upper === 'INTERVAL' && !cursor.isSymbol('(', 1)) return parseInterval(cursor, at)
  if ((upper === 'DATE' || upper === 'TIMESTAMP') && cursor.peek(1)?.kind === 'string') {
    cursor.take()
    return call(upper === 'DATE' ? 'toDate' : 'toDateTime', [{ kind: 'string', text: cursor.take().value, at }], at)
  }
  if (upper === 'EXISTS' && cursor.isSymbol('(', 1)) {
    cursor.take()
    if (cursor.isQueryStart())
      return { kind: 'subquery', query: cursor.inParentheses(() => cursor.query()), isExists: true, at }
    throw cursor.unexpected('SELECT')
  }
  if (cursor.isSymbol('(', 1)) {
    const name = cursor.take().value
    return parseCallEnd(cursor, name, at)
  }
  const path = [cursor.expectName()]
  while (cursor.isSymbol('.')) {
    cursor.take()
    if (cursor.takeSymbol('*')) return parseStarEnd(cursor, { at, table: path.at(-1) })
    const next = cursor.take()
    if (next.kind !== 'word' && next.kind !== 'name')
      throw new QueryError(
        'SYNTAX_ERROR',
        `Syntax error at position ${next.at}: ${shownName(next.text)} after a point is not a name.`,
      )
    path.push(next.value)
    if (cursor.isSymbol('(')) throw qualifiedFunction(path, at)
  }
  return { kind: 'identifier', path, at }
}

function parseCase(cursor: Cursor): Expression {
  const { at } = cursor.take()
  const subject = cursor.isWord('WHEN') ? undefined : parseOperation(cursor)
  const args: Expression[] = []
  while (cursor.takeWords('WHEN')) {
    const when = parseOperation(cursor)
    cursor.expectWord('THEN')
    args.push(when, parseOperation(cursor))
  }
  if (args.length === 0) throw cursor.unexpected('WHEN')
  args.push(cursor.takeWords('ELSE') ? parseOperation(cursor) : { kind: 'null', text: 'null', at })
  cursor.expectWord('END')
  return subject === undefined ? call('multiIf', args, at) : call('caseWithExpression', [subject, ...args], at)
}

function parseInterval(cursor: Cursor, at: number): Expression {
  cursor.take()
  const amount = cursor.peek()
  if (amount?.kind === 'string') {
    const parts = /^\s*(-?\d+)\s+(\w+)\s*$/.exec(amount.value)
    if (parts !== null) {
      cursor.take()
      return interval({ kind: 'number', text: parts[1] as string, at }, parts[2] as string, at)
    }
  }
  const of = parseChain(cursor, SUMS_THEN_CONCAT)
  const unit = cursor.take()
  return interval(of.kind === 'string' ? { ...of, kind: 'number' } : of, unit.text, unit.at)
}

function interval(of: Expression, unit: string, at: number): Expression {
  const known = UNITS.exec(unit.toUpperCase())?.[1]
  if (known === undefined)
    throw new QueryError(
      'SYNTAX_ERROR',
      `Syntax error at position ${at}: ${shownName(unit)} is not a unit of an interval; offered: SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, QUARTER, YEAR.`,
    )
  return call(`toInterval${known[0]}${known.slice(1).toLowerCase()}`, [of], at)
}
