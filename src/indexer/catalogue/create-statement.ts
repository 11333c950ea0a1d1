import type { ListedTable } from './catalogue-table.ts'

/** The statement that SHOW CREATE TABLE prints: the columns, without the engine's own storage. */
export function createStatementOf({
  database,
  name,
  columns,
}: Pick<ListedTable, 'database' | 'name' | 'columns'>): string {
  const lines = columns.map((column) => `    \`${column.name}\` ${column.type}`)
  return `CREATE TABLE ${database}.${name}\n(\n${lines.join(',\n')}\n)`
}
