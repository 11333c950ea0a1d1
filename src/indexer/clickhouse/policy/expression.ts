import { isSymbol, isWord } from '../../query/sql-tokens.ts'
import { readCall, readParameter, readType } from './calls.ts'
import { isName, type Reader, readExpressions, readList, readNested, type Scope, syntaxError } from './reader.ts'

const OPERATORS = ['+', '-', '*', '/', '%', '=', '==', '!=', '<>', '<', '>', '<=', '>=', '||', '->', '?', ':'] as const
const WORD_OPERATORS = ['AND', 'OR', 'XOR', 'DIV', 'MOD', 'LIKE', 'ILIKE', 'BETWEEN'] as const
const INTERVAL_UNITS = `
  MILLISECOND MILLISECONDS SECOND SECONDS MINUTE MINUTES HOUR HOURS DAY DAYS WEEK WEEKS MONTH MONTHS QUARTER QUARTERS YEAR YEARS
`
  .trim()
  .split(/\s+/)

/** An expression with its optional alias. Operator precedence does not change which tokens are read, so operators form a chain. */
export function readExpression(reader: Reader, scope: Scope): void {
  readOperation(reader, scope)
  if (reader.takeWord('AS') !== undefined) reader.aliases.add(reader.expectName())
}

/** An expression without an alias. */
export function readOperation(reader: Reader, scope: Scope): void {
  do readOperand(reader, scope)
  while (takeOperator(reader, scope))
}

/** Whether another operand follows. IS NULL and IN are read completely here. */
function takeOperator(reader: Reader, scope: Scope): boolean {
  for (;;) {
    if (reader.takeSymbol(...OPERATORS) !== undefined || reader.takeWord(...WORD_OPERATORS) !== undefined) return true
    if (reader.takeWord('IS') !== undefined) {
      reader.takeWord('NOT')
      reader.expectWord('NULL')
    } else if (reader.takeWord('NOT') !== undefined) {
      if (reader.takeWord('LIKE', 'ILIKE', 'BETWEEN') !== undefined) return true
      readIn(reader, scope)
    } else if (isWord(reader.peek(), 'IN') || isWord(reader.peek(), 'GLOBAL')) {
      // GLOBAL may also begin a join; then it is not part of the expression.
      if (isWord(reader.peek(), 'GLOBAL') && !isWord(reader.peek(1), 'IN') && !isWord(reader.peek(1), 'NOT'))
        return false
      readIn(reader, scope)
    } else return false
  }
}

/** `[GLOBAL] [NOT] IN` and its right side: a table, a query, or a list. */
function readIn(reader: Reader, scope: Scope): void {
  reader.takeWord('GLOBAL')
  reader.takeWord('NOT')
  reader.expectWord('IN')
  if (reader.takeSymbol('(') !== undefined) readSet(reader, scope)
  else if (isName(reader.peek()) && !isSymbol(reader.peek(1), '(')) readInTable(reader, scope)
  else readOperand(reader, scope)
}

/** The list after IN and its opening parenthesis. Some servers take a single name there for a table. */
function readSet(reader: Reader, scope: Scope): void {
  if (reader.beginsQuery()) return readNested(reader, ')', () => reader.query(scope))
  if (isName(reader.peek()) && isSymbol(reader.peek(1), ')')) readInTable(reader, scope)
  else {
    const { isInSet } = reader
    reader.isInSet = true
    reader.nested(() => readExpressions(reader, scope))
    reader.isInSet = isInSet
  }
  reader.expectSymbol(')')
}

function readInTable(reader: Reader, scope: Scope): void {
  reader.inTables.add(reader.peek()?.value ?? '')
  reader.tableName(scope)
}

function readOperand(reader: Reader, scope: Scope): void {
  while (reader.takeSymbol('-', '+') !== undefined || reader.takeWord('NOT') !== undefined);
  readBareOperand(reader, scope)
  for (;;) {
    if (reader.takeSymbol('[') !== undefined) readNested(reader, ']', () => reader.expression(scope))
    else if (reader.takeSymbol('::') !== undefined) readType(reader)
    else if (!takeMember(reader)) return
  }
}

/** `.1` of a tuple, which is tokenised as a number. */
function takeMember(reader: Reader): boolean {
  const { kind, text } = reader.peek() ?? {}
  if (kind !== 'number' || text?.startsWith('.') !== true) return false
  reader.take()
  return true
}

function readBareOperand(reader: Reader, scope: Scope): void {
  const token = reader.peek()
  const next = reader.peek(1)
  if (token === undefined) throw reader.unexpected()
  switch (token.kind) {
    case 'number':
    case 'string':
      reader.take()
      return
    case 'parameter':
      return readParameter(reader)
    case 'symbol':
      return readSymbolOperand(reader, scope)
    default:
  }
  if (token.upper === 'CASE') return readCase(reader, scope)
  if (token.upper === 'INTERVAL') return readInterval(reader, scope)
  if ((token.upper === 'DATE' || token.upper === 'TIMESTAMP') && next?.kind === 'string') {
    reader.take()
    reader.take()
    return
  }
  if (isSymbol(next, '(')) return readCall(reader, scope)
  readColumn(reader, scope)
}

function readSymbolOperand(reader: Reader, scope: Scope): void {
  if (reader.takeSymbol('(') !== undefined) {
    if (reader.isInSet) readSet(reader, scope)
    else if (reader.beginsQuery()) readNested(reader, ')', () => reader.query(scope))
    else if (reader.takeSymbol(')') === undefined) readNested(reader, ')', () => readExpressions(reader, scope))
  } else if (reader.takeSymbol('[') !== undefined) {
    if (reader.takeSymbol(']') === undefined) readNested(reader, ']', () => readExpressions(reader, scope))
  } else if (reader.takeSymbol('*') !== undefined) readStarModifiers(reader, scope)
  else throw reader.unexpected()
}

/** `* EXCEPT (a, b) REPLACE (x AS c)`. */
function readStarModifiers(reader: Reader, scope: Scope): void {
  if (reader.takeWord('EXCEPT') !== undefined) {
    reader.expectSymbol('(')
    readNested(reader, ')', () => readList(reader, () => reader.expectName()))
  }
  if (reader.takeWord('REPLACE') === undefined) return
  reader.expectSymbol('(')
  readNested(reader, ')', () => readExpressions(reader, scope))
}

/** A column, qualified or not. */
function readColumn(reader: Reader, scope: Scope): void {
  reader.expectName()
  while (isSymbol(reader.peek(), '.')) {
    if (reader.isInSet) throw syntaxError('inside IN ( ) a column must be written without its table')
    reader.take()
    if (reader.takeSymbol('*') !== undefined) return readStarModifiers(reader, scope)
    reader.expectName()
  }
}

function readCase(reader: Reader, scope: Scope): void {
  reader.expectWord('CASE')
  reader.nested(() => {
    if (!isWord(reader.peek(), 'WHEN')) reader.expression(scope)
    reader.expectWord('WHEN')
    do {
      reader.expression(scope)
      reader.expectWord('THEN')
      reader.expression(scope)
    } while (reader.takeWord('WHEN') !== undefined)
    if (reader.takeWord('ELSE') !== undefined) reader.expression(scope)
  })
  reader.expectWord('END')
}

/** `INTERVAL 5 DAY` or `INTERVAL '5 day'`. */
function readInterval(reader: Reader, scope: Scope): void {
  reader.expectWord('INTERVAL')
  const isText = reader.peek()?.kind === 'string'
  reader.nested(() => readOperand(reader, scope))
  if (reader.takeWord(...INTERVAL_UNITS) === undefined && !isText) throw reader.unexpected()
}
