import { foldName } from '../../query/sql-tokens.ts'
import type { Value } from '../value.ts'

/** A column of a table or subquery in FROM. */
export type Column = {
  readonly name: string
  /** Alias or name of its table. */
  readonly table: string
  /** Database and name of its table, which may be written in the place of the alias. */
  readonly origin?: readonly [database: string, table: string] | undefined
  readonly value: Value
  /** USING joins its table: the column of the other side stands for both. */
  readonly isMerged?: boolean
  /** It is on the side of a SEMI JOIN that only decides which rows stay: its values are not known. */
  readonly isDropped?: boolean
}

/** The first column of a name. */
export type Match = { readonly column: Column; readonly isOnly: boolean }

/** Maps of one list of columns, each made when it is first used: a statement may have thousands of columns, and thousands of names of them. */
class ColumnIndex {
  readonly #columns: readonly Column[]
  #exact: ReadonlyMap<string, Match> | undefined
  #folded: ReadonlyMap<string, Match> | undefined
  #unmerged: readonly Column[] | undefined
  #tables: ReadonlyMap<string, readonly Column[]> | undefined
  #origins: ReadonlyMap<string, readonly Column[]> | undefined

  constructor(columns: readonly Column[]) {
    this.#columns = columns
  }

  /** With the same letters. */
  exact(name: string): Match | undefined {
    this.#exact ??= matchesOf(this.#columns, (each) => each)
    return this.#exact.get(name)
  }

  /** In any case. */
  folded(name: string): Match | undefined {
    this.#folded ??= matchesOf(this.#columns, foldName)
    return this.#folded.get(foldName(name))
  }

  get unmerged(): readonly Column[] {
    this.#unmerged ??= this.#columns.filter((each) => each.isMerged !== true)
    return this.#unmerged
  }

  /** By the alias or name of the table, in lower case. */
  ofTable(table: string): readonly Column[] {
    this.#tables ??= Map.groupBy(this.#columns, (each) => foldName(each.table))
    return this.#tables.get(table) ?? []
  }

  /** By the table that an alias stands for, and its database if that is given, in lower case. */
  ofOrigin(table: string, database: string | undefined): readonly Column[] {
    this.#origins ??= originsOf(this.#columns)
    return this.#origins.get(database === undefined ? table : originKey(database, table)) ?? []
  }
}

function matchesOf(columns: readonly Column[], keyOf: (name: string) => string): ReadonlyMap<string, Match> {
  const matches = new Map<string, Match>()
  for (const column of columns) {
    const key = keyOf(column.name)
    const first = matches.get(key)
    if (first?.isOnly !== false) matches.set(key, { column: first?.column ?? column, isOnly: first === undefined })
  }
  return matches
}

function originsOf(columns: readonly Column[]): ReadonlyMap<string, readonly Column[]> {
  const known = columns.filter(({ origin }) => origin !== undefined)
  const key = ({ origin: [database, table] = ['', ''] }: Column): string => originKey(database, table)
  return new Map([...Map.groupBy(known, ({ origin }) => origin?.[1] ?? ''), ...Map.groupBy(known, key)])
}

/** No name contains a NUL. */
function originKey(database: string, table: string): string {
  return `${database}\0${table}`
}

const indexes = new WeakMap<readonly Column[], ColumnIndex>()

function indexOf(columns: readonly Column[]): ColumnIndex {
  const index = indexes.get(columns) ?? new ColumnIndex(columns)
  indexes.set(columns, index)
  return index
}

/** The column of a path: a name, with its table before it or not. The same letters count before letters in another case. */
export function matchColumn(columns: readonly Column[], path: readonly string[]): Match | undefined {
  const name = path.at(-1) ?? ''
  const index = indexOf(path.length === 1 ? unmergedColumns(columns) : columnsOf(columns, path.slice(0, -1)))
  return index.exact(name) ?? index.folded(name)
}

/** Without those that USING has merged into a column of the other side. */
export function unmergedColumns(columns: readonly Column[]): readonly Column[] {
  return indexOf(columns).unmerged
}

/** The first column with exactly this name. */
export function columnNamed(columns: readonly Column[], name: string): Column | undefined {
  return indexOf(columns).exact(name)?.column
}

/** The columns of a table by its alias, its name, or its database and name. */
export function columnsOf(columns: readonly Column[], path: readonly string[]): readonly Column[] {
  if (path.length > 2) return []
  const [table = '', database] = path.map(foldName).toReversed()
  const aliased = database === undefined ? indexOf(columns).ofTable(table) : []
  return aliased.length > 0 ? aliased : indexOf(columns).ofOrigin(table, database)
}
