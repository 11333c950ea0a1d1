import { QueryError } from './error.ts'

/**
 * Limits that hold before the engine plans the statement: planning a deep expression cannot be interrupted, and a query of less than 2 KB can
 * take half a minute. The values are a hundred times below those that do harm.
 */
export const TREE_DEPTH_MAX = 250
/** Counted after common table expressions are expanded: each counts as often as it is used. */
export const TABLES_MAX = 20

export function treeTooDeep(): QueryError {
  return new QueryError('TOO_DEEP_AST', `The query is nested too deeply. Maximum: ${TREE_DEPTH_MAX} levels.`)
}

export function tooManyTables(): QueryError {
  return new QueryError('TOO_BIG_AST', `The query reads too many tables. Maximum: ${TABLES_MAX}, each use counted.`)
}
