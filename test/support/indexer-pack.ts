import { columnAt, type Row, rowsIn } from '../../src/indexer/ingest/batch-rows.ts'
import type { PackQuery } from '../../src/indexer/query/pack.ts'
import type { WriteBatch } from '../../src/indexer/store.ts'

/** Values for the parameters of the pack that find something in these rows. */
export function packValues({
  rows,
}: Pick<WriteBatch, 'rows'>): Readonly<Record<PackQuery['parameters'][number], string>> {
  const [transfer] = rowsIn(rows, 'token_transfers').filter((row) => row[columnAt('token_transfers', 'mint')] !== '')
  const [transaction] = rowsIn(rows, 'transactions').filter((row) => row[columnAt('transactions', 'success')] === true)
  const text = (row: Row | undefined, at: number): string => String(row?.[at])
  return {
    account: text(transaction, columnAt('transactions', 'fee_payer')),
    mint: text(transfer, columnAt('token_transfers', 'mint')),
    signature: text(transfer, columnAt('token_transfers', 'signature')),
  }
}

/** The statement with its values in it, for servers that know no parameters. */
export function withValues({ sql }: PackQuery, values: Readonly<Record<string, string>>): string {
  return sql.replaceAll(/\{(\w+):String\}/g, (_all, name: string) => `'${values[name]}'`)
}

/** Answers in JSONCompact as texts, so that engines which quote or type a number otherwise can be compared. */
export function packRows(body: string): string[][] {
  const { data } = JSON.parse(body) as { data: unknown[][] }
  return data.map((row) => row.map(plain))
}

function plain(value: unknown): string {
  if (typeof value === 'boolean') return String(Number(value))
  return Array.isArray(value) ? JSON.stringify(value) : String(value)
}
