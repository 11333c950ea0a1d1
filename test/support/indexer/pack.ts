import type { ExampleQuery } from '../../../src/indexer/example-queries.ts'
import { columnAt, type Row, rowsIn } from '../../../src/indexer/ingest/batch-rows.ts'
import type { WriteBatch } from '../../../src/indexer/store/store.ts'

/** Parameter values for the example queries that match some of these rows. */
export function packValues({
  rows,
}: Pick<WriteBatch, 'rows'>): Readonly<Record<ExampleQuery['parameters'][number], string>> {
  const [transfer] = rowsIn(rows, 'token_transfers').filter((row) => row[columnAt('token_transfers', 'mint')] !== '')
  const [transaction] = rowsIn(rows, 'transactions').filter((row) => row[columnAt('transactions', 'success')] === true)
  const text = (row: Row | undefined, at: number): string => String(row?.[at])
  return {
    account: text(transaction, columnAt('transactions', 'fee_payer')),
    mint: text(transfer, columnAt('token_transfers', 'mint')),
    signature: text(transfer, columnAt('token_transfers', 'signature')),
  }
}

/** The statement with its values inserted, for servers without query parameters. */
export function withValues({ sql }: ExampleQuery, values: Readonly<Record<string, string>>): string {
  return sql.replaceAll(/\{(\w+):String\}/g, (_all, name: string) => `'${values[name]}'`)
}

/** The statement without its rounding of shares and quantiles: servers of 2018 round halves up, current ones to the even digit. */
export function withoutRounding(sql: string): string {
  return sql.replaceAll(/\bround\((.*?), \d\) AS /g, '($1) AS ')
}

/** Rows of JSONCompact as strings, because engines quote and type numbers differently. */
export function packRows(body: string): string[][] {
  const { data } = JSON.parse(body) as { data: unknown[][] }
  return data.map((row) => row.map(comparable))
}

function comparable(value: unknown): string {
  if (typeof value === 'boolean') return String(Number(value))
  // Sums of doubles depend on their order: twelve digits are compared.
  if (typeof value === 'number') return String(Number(value.toPrecision(12)))
  return Array.isArray(value) ? JSON.stringify(value) : String(value)
}
