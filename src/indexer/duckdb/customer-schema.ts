import type { DuckConnection, DuckDatabase } from '../../platform/db/duckdb.ts'
import { CATALOGUE_SCHEMAS } from '../catalogue/catalogue-names.ts'
import { DATABASE, PUBLISHED } from '../schema.ts'
import { base58Macros } from './base58-macros.ts'
import { catalogueDdl } from './catalogue-ddl.ts'
import { sourceOf } from './ddl.ts'

/** In-memory catalogue with the views and macros that customers reach; the tables of the data file have no name there. */
const CUSTOMERS = 'customers'

/** Locks the engine against files, network, extensions and settings. In this order, after the data file is open. */
const LOCKS = [
  "SET temp_directory = ''",
  'SET allow_community_extensions = false',
  'SET autoinstall_known_extensions = false',
  'SET autoload_known_extensions = false',
  'SET enable_external_access = false',
  // The writer lowers the memory limit for a moment. A customer's statement cannot: the SQL policy allows SELECT only.
  "SET allowed_configs = ['memory_limit']",
  'SET lock_configuration = true',
]

/** Creates the views and macros that customers reach, then locks the engine. `base` is the schema of the tables in the data file. */
export async function prepareQueries(database: DuckDatabase, base: string): Promise<void> {
  using connection = await database.connect()
  await connection.run(`ATTACH ':memory:' AS ${CUSTOMERS}`)
  await connection.run(`CREATE SCHEMA ${CUSTOMERS}.${DATABASE}`)
  await connection.run(`CREATE SCHEMA ${CUSTOMERS}.fn`)
  for (const { name, columns } of PUBLISHED) {
    const listed = columns.map((column) => column.name).join(', ')
    await connection.run(
      `CREATE VIEW ${CUSTOMERS}.${DATABASE}.${name} AS SELECT ${listed} FROM ${base}.${sourceOf(name)}`,
    )
  }
  await connection.run(`CREATE VIEW ${CUSTOMERS}.fn.covered AS SELECT max(to_slot) AS slot FROM ${base}._ranges`)
  for (const { sql, parameters } of catalogueDdl(CUSTOMERS)) await connection.run(sql, parameters)
  for (const macro of base58Macros(`${CUSTOMERS}.fn`)) await connection.run(macro)
  for (const lock of LOCKS) await connection.run(lock)
}

/**
 * Runs before a statement: sets the names that it may use, begins a read-only transaction and reads the coverage in it. Planning and running
 * share the transaction, because a plan leaves out conditions that all rows fulfil: on a later state of the tables it would return rows that
 * do not fulfil them.
 */
function startOf(database: string): string {
  const schema = CATALOGUE_SCHEMAS[database] ?? DATABASE
  return `SET search_path = '${CUSTOMERS}.${schema},${CUSTOMERS}.fn'; BEGIN TRANSACTION READ ONLY; SELECT slot FROM ${CUSTOMERS}.fn.covered`
}

/**
 * Begins the read-only transaction of a statement; `database` is that of names without one. Resolves with the newest slot up to which the tables are
 * complete.
 */
export async function beginReading(connection: DuckConnection, database: string = DATABASE): Promise<number> {
  return Number((await readValue(connection, startOf(database))) ?? 0)
}

/** The first value of the first row. */
export async function readValue(
  connection: DuckConnection,
  sql: string,
  params?: Record<string, string>,
): Promise<unknown> {
  const [piece] = (await connection.run(sql, params)).pieces()
  return piece?.[0]?.[0]
}
