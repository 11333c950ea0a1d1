import { QueryError, unknownTable } from '../query/error.ts'
import { foldName, isSymbol, isWord, shownName, type Token } from '../query/sql-tokens.ts'
import { DATABASE } from '../schema.ts'
import { SETTINGS, SETTINGS_BY_NAME } from '../session/setting-list.ts'
import { CATALOGUE_TABLES, DATABASES, LISTED_TABLES } from './catalogue.ts'
import type { ListedTable } from './catalogue-table.ts'
import { createStatementOf } from './create-statement.ts'
import { likePattern } from './like.ts'
import { DATABASE_NAMES } from './system-database.ts'

/** A result that needs no engine; types are the engine's names. */
export type CatalogueRows = {
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  readonly rows: readonly (readonly unknown[])[]
}

export type ShowContext = {
  /** Database of names without one. */
  readonly database: string
  /** Settings of the session and the request. */
  readonly settings: Readonly<Record<string, string>>
}

/** The rows of SHOW, DESCRIBE and EXISTS; undefined for every other statement. Throws QueryError for a table that is not published. */
export function readShow(tokens: readonly Token[], context: ShowContext): CatalogueRows | undefined {
  const words = createWords(
    tokens.filter(({ text }) => text !== ';'),
    context,
  )
  if (words.take('SHOW')) return show(words, context)
  if (words.take('DESCRIBE', 'DESC')) {
    words.take('TABLE')
    return words.isQuery() ? undefined : describedRows(words.table().columns)
  }
  return words.take('EXISTS') ? exists(words) : undefined
}

function show(words: Words, context: ShowContext): CatalogueRows {
  words.take('EXTENDED')
  const isFull = words.take('FULL')
  if (words.take('DATABASES', 'SCHEMAS')) {
    return oneColumn(
      'name',
      words.filtered(DATABASE_NAMES, (name) => name),
    )
  }
  if (words.take('TABLES')) {
    const database = words.take('FROM', 'IN') ? words.database() : context.database
    const names = LISTED_TABLES.filter((table) => table.database === database).map(({ name }) => name)
    return oneColumn(
      'name',
      words.filtered(names.toSorted(), (name) => name),
    )
  }
  if (words.take('COLUMNS', 'FIELDS')) return showColumns(words, context, isFull)
  if (words.take('CREATE')) {
    if (words.take('DATABASE')) return oneColumn('statement', [`CREATE DATABASE ${words.database()}\nENGINE = Memory`])
    words.take('TABLE', 'VIEW')
    return oneColumn('statement', [createStatementOf(words.table())])
  }
  if (words.take('FUNCTIONS')) return showFunctions(words)
  if (words.take('SETTING')) return showSetting(words, context)
  const isChanged = words.take('CHANGED')
  if (words.take('SETTINGS')) return showSettings(words, context, isChanged)
  throw new QueryError(
    'NOT_IMPLEMENTED',
    `SHOW ${shownName(words.rest())} is not offered; offered: SHOW DATABASES, TABLES, COLUMNS, CREATE, FUNCTIONS, SETTING and SETTINGS.`,
  )
}

function showColumns(words: Words, context: ShowContext, isFull: boolean): CatalogueRows {
  if (!words.take('FROM', 'IN')) throw words.unexpected()
  let table = words.name()
  let database = context.database
  if (words.takeSymbol('.')) {
    database = foldName(table)
    table = words.name()
  } else if (words.take('FROM', 'IN')) database = words.database()
  const { columns, key } = words.listed(database, table)
  const rows = words.filtered(columns, ({ name }) => name)
  const names = [
    'field',
    'type',
    'null',
    'key',
    'default',
    'extra',
    ...(isFull ? ['collation', 'comment', 'privileges'] : []),
  ]
  return textRows(
    names,
    rows.map(({ name, type, help }) => [
      name,
      type,
      type.startsWith('Nullable(') ? 'YES' : 'NO',
      key.includes(name) ? 'PRI SOR' : '',
      null,
      '',
      ...(isFull ? [null, help, ''] : []),
    ]),
  )
}

function showFunctions(words: Words): CatalogueRows {
  const table = CATALOGUE_TABLES.find(({ database, name }) => database === 'system' && name === 'functions')
  const rows = words.filtered(table?.rows ?? [], ([name]) => String(name))
  const columns = (table?.columns ?? []).map(({ name, type }) => ({
    name,
    type: type === 'UInt8' ? 'UTINYINT' : 'VARCHAR',
  }))
  return { columns, rows }
}

function showSettings(words: Words, { settings }: ShowContext, isChanged: boolean): CatalogueRows {
  const shown = SETTINGS.filter(({ name }) => !isChanged || Object.hasOwn(settings, name))
  const rows = words.filtered(shown, ({ name }) => name)
  return textRows(
    ['name', 'type', 'value'],
    rows.map(({ name, type, value }) => [name, type, Object.hasOwn(settings, name) ? settings[name] : value]),
  )
}

function showSetting(words: Words, { settings }: ShowContext): CatalogueRows {
  const name = words.name()
  const setting = SETTINGS_BY_NAME.get(name)
  if (setting === undefined) throw new QueryError('UNKNOWN_SETTING', `Unknown setting '${shownName(name)}'.`)
  words.end()
  return oneColumn(name, [(Object.hasOwn(settings, name) ? settings[name] : undefined) ?? setting.value])
}

/** The rows of DESCRIBE. */
export function describedRows(columns: ListedTable['columns']): CatalogueRows {
  return textRows(
    ['name', 'type', 'default_type', 'default_expression', 'comment', 'codec_expression', 'ttl_expression'],
    columns.map(({ name, type, help }) => [name, type, '', '', help, '', '']),
  )
}

function exists(words: Words): CatalogueRows {
  words.take('TEMPORARY')
  if (words.take('DATABASE')) return flag(words.isDatabase(foldName(words.name())))
  words.take('TABLE', 'VIEW', 'DICTIONARY')
  const { database, name } = words.tableName()
  return flag(words.find(database, name) !== undefined)
}

function flag(isTrue: boolean): CatalogueRows {
  return { columns: [{ name: 'result', type: 'UTINYINT' }], rows: [[isTrue ? 1 : 0]] }
}

export function textRows(names: readonly string[], rows: readonly (readonly unknown[])[]): CatalogueRows {
  return { columns: names.map((name) => ({ name, type: 'VARCHAR' })), rows }
}

function oneColumn(name: string, values: readonly string[]): CatalogueRows {
  return textRows(
    [name],
    values.map((value) => [value]),
  )
}

type Words = ReturnType<typeof createWords>

/** Reads the words of a statement in order. */
function createWords(tokens: readonly Token[], { database: current }: ShowContext) {
  let at = 0
  const isDatabase = (name: string): boolean => DATABASES.has(name)
  const unexpected = (): QueryError =>
    new QueryError(
      'SYNTAX_ERROR',
      `Syntax error: failed at ${shownName(tokens[at]?.text ?? 'the end of the statement')}.`,
    )

  function take(...words: readonly string[]): boolean {
    const isTaken = words.some((word) => isWord(tokens[at], word))
    if (isTaken) at++
    return isTaken
  }

  function takeSymbol(text: string): boolean {
    const isTaken = isSymbol(tokens[at], text)
    if (isTaken) at++
    return isTaken
  }

  function name(): string {
    const token = tokens[at]
    if (token?.kind !== 'word' && token?.kind !== 'name') throw unexpected()
    at++
    return token.value
  }

  function end(): void {
    if (at < tokens.length) throw unexpected()
  }

  function database(): string {
    const given = name()
    const folded = foldName(given)
    const known = folded === 'default' ? DATABASE : folded
    if (!isDatabase(known)) throw new QueryError('UNKNOWN_DATABASE', `Database ${shownName(given)} does not exist.`)
    return known
  }

  /** A table name, qualified or not, at the end of the statement. */
  function tableName(): { readonly database: string; readonly name: string } {
    const first = name()
    const found = takeSymbol('.')
      ? { database: foldName(first), name: foldName(name()) }
      : { database: current, name: foldName(first) }
    end()
    return found
  }

  function find(inDatabase: string, table: string): ListedTable | undefined {
    if (!isDatabase(inDatabase)) return undefined
    return LISTED_TABLES.find((each) => each.database === inDatabase && each.name === table)
  }

  function listed(inDatabase: string, table: string): ListedTable {
    const folded = foldName(table)
    const found = find(inDatabase, folded)
    if (found === undefined) throw unknownTable(shownName(folded))
    return found
  }

  /** The entries that `[NOT] LIKE 'pattern'`, ILIKE and LIMIT at the end of the statement select. */
  function filtered<Entry>(entries: readonly Entry[], nameOf: (entry: Entry) => string): readonly Entry[] {
    const isNot = take('NOT')
    const isCaseSensitive = isWord(tokens[at], 'LIKE')
    let found = entries
    if (take('LIKE', 'ILIKE')) {
      const pattern = tokens[at]
      if (pattern?.kind !== 'string') throw unexpected()
      at++
      // Once for all entries: a pattern may be as long as the statement.
      const matches = likePattern(pattern.value, isCaseSensitive)
      found = entries.filter((entry) => matches(nameOf(entry)) !== isNot)
    } else if (isNot) throw unexpected()
    if (take('LIMIT')) {
      const count = tokens[at]
      if (count?.kind !== 'number') throw unexpected()
      at++
      found = found.slice(0, Number(count.value))
    }
    end()
    return found
  }

  return {
    take,
    takeSymbol,
    name,
    end,
    database,
    tableName,
    find,
    listed,
    isDatabase,
    filtered,
    unexpected,
    rest: () => tokens[at]?.text ?? '',
    isQuery: () => isSymbol(tokens[at], '(') || isWord(tokens[at], 'SELECT') || isWord(tokens[at], 'WITH'),
    table(): ListedTable {
      const named = tableName()
      return listed(named.database, named.name)
    },
  }
}
