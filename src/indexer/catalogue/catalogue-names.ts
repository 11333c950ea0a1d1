import { foldName, isSymbol, isWord, type Token } from '../query/sql-tokens.ts'
import { TABLES_BY_DATABASE } from './catalogue.ts'
import { quotedName } from './connection-functions.ts'

/** Schemas of the embedded engine that hold the tables of `system` and `information_schema`; the engine has catalogues of its own by these names. */
export const CATALOGUE_SCHEMAS: Readonly<Record<string, string>> = {
  system: 'clickhouse_system',
  information_schema: 'clickhouse_information_schema',
}

/** Column names of these tables that are reserved words of the embedded engine. */
const RESERVED = new Set(['TABLE', 'DEFAULT'])

/**
 * Replaces the names of `system` and `information_schema` by those of the schemas in the embedded engine. A column that is qualified by database and
 * table is qualified by the alias of the table instead: the engine does not know the complete name of a table with an alias.
 */
export function resolveCatalogueNames(tokens: readonly Token[], current: string): readonly Token[] {
  const found = tokens.map((_, at) => tableAt(tokens, at))
  if (current in CATALOGUE_SCHEMAS === false && found.every((each) => each === undefined)) return tokens
  const aliases = new Map<string, Token>()
  for (const [at, each] of found.entries()) {
    if (each === undefined || each.isColumn) continue
    const alias = aliasAt(tokens, at + 3)
    if (alias !== undefined) aliases.set(`${each.database}.${each.table}`, alias)
  }
  const out: Token[] = []
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at] as Token
    const each = found[at]
    if (each === undefined) {
      out.push(RESERVED.has(token.upper) ? quotedName(token, foldName(token.value)) : token)
      continue
    }
    const table = tokens[at + 2] as Token
    if (each.isColumn) out.push(aliases.get(`${each.database}.${each.table}`) ?? quotedName(table, each.table))
    else
      out.push(
        quotedName(token, CATALOGUE_SCHEMAS[each.database] ?? ''),
        tokens[at + 1] as Token,
        quotedName(table, each.table),
      )
    at += 2
  }
  return out
}

type Found = { readonly database: string; readonly table: string; readonly isColumn: boolean }

/** `system.tables`, or the beginning of `system.tables.name`. */
function tableAt(tokens: readonly Token[], at: number): Found | undefined {
  const [first, dot, second, after] = tokens.slice(at, at + 4)
  if (!isName(first) || !isSymbol(dot, '.') || !isName(second) || isSymbol(tokens[at - 1], '.')) return undefined
  const [database, table] = [foldName(first.value), foldName(second.value)]
  if (!Object.hasOwn(CATALOGUE_SCHEMAS, database) || TABLES_BY_DATABASE.get(database)?.has(table) !== true)
    return undefined
  return { database, table, isColumn: isSymbol(after, '.') }
}

function isName(token: Token | undefined): token is Token {
  return token?.kind === 'word' || token?.kind === 'name'
}

/** Words that may follow a table; any other word is its alias. */
const AFTER_TABLE = new Set(
  `WHERE PREWHERE GROUP ORDER HAVING LIMIT JOIN LEFT RIGHT INNER OUTER FULL CROSS ON USING UNION EXCEPT INTERSECT FINAL SAMPLE SETTINGS FORMAT ARRAY
  ANY ALL SEMI ANTI ASOF GLOBAL WINDOW QUALIFY OFFSET PASTE`.split(/\s+/),
)

function aliasAt(tokens: readonly Token[], at: number): Token | undefined {
  const token = tokens[at]
  if (isWord(token, 'AS')) return isName(tokens[at + 1]) ? tokens[at + 1] : undefined
  return isName(token) && !AFTER_TABLE.has(token.upper) ? token : undefined
}
