import { QueryError } from '../query/error.ts'
import { isWord, shownName, type Token } from '../query/sql-tokens.ts'

/** What EXPLAIN shows: the steps of the statement, or the statement itself. */
export type ExplainKind = 'plan' | 'syntax'

/** Reads EXPLAIN; undefined for every other statement. Throws QueryError for a form of it that is not offered. */
export function readExplain(
  tokens: readonly Token[],
): { readonly kind: ExplainKind; readonly tokens: readonly Token[] } | undefined {
  if (!isWord(tokens[0], 'EXPLAIN')) return undefined
  const [, second, third] = tokens
  if (isStart(second)) return { kind: 'plan', tokens: tokens.slice(1) }
  if (isWord(second, 'PLAN') && isStart(third)) return { kind: 'plan', tokens: tokens.slice(2) }
  if (isWord(second, 'SYNTAX') && isStart(third)) return { kind: 'syntax', tokens: tokens.slice(2) }
  throw new QueryError(
    'NOT_IMPLEMENTED',
    `EXPLAIN ${shownName(second?.text ?? '')} is not offered; offered: EXPLAIN SELECT, EXPLAIN PLAN SELECT and EXPLAIN SYNTAX SELECT, without settings.`,
  )
}

/** The query of `DESCRIBE (SELECT …)`; undefined for every other statement. */
export function readDescribedQuery(tokens: readonly Token[]): readonly Token[] | undefined {
  if (!isWord(tokens[0], 'DESCRIBE') && !isWord(tokens[0], 'DESC')) return undefined
  const query = tokens.slice(isWord(tokens[1], 'TABLE') ? 2 : 1)
  return isStart(query[0]) ? query : undefined
}

function isStart(token: Token | undefined): boolean {
  return isWord(token, 'SELECT') || isWord(token, 'WITH') || token?.text === '('
}
