import type { ChainBlock } from '../../solana/chain-block.ts'
import { TABLES, type Table, type TableName, tableOf } from '../schema.ts'
import type { WriteBatch } from '../store/store.ts'
import { BatchRows, type Row, rowsIn, TableRows } from './batch-rows.ts'
import { addBlockRow, addTransactionRows, type BlockOrigin, type RowOptions } from './block-rows.ts'

/** For tests and benchmarks: the rows of blocks as a batch to write and as values to compare. */

const ALL: RowOptions = { includeVotes: true, includeLogs: true }
const FROM_STREAM: BlockOrigin = { commitment: 'confirmed', source: 'stream' }

export function batchRowsOf(blocks: Iterable<ChainBlock>, options: RowOptions = ALL, origin = FROM_STREAM): BatchRows {
  const rows = new BatchRows()
  for (const block of blocks) addBlockRow(rows, addTransactionRows(rows, block, options), origin)
  return rows
}

export function batchOf(
  blocks: readonly ChainBlock[],
  given: Partial<RowOptions> & { finalizedSlot?: number } = {},
): WriteBatch {
  const { finalizedSlot = 0, ...options } = given
  const [first, last] = [blocks[0], blocks.at(-1)]
  if (first === undefined || last === undefined) throw new RangeError('a batch has at least one block')
  const range = { from: first.parentSlot + 1, to: last.slot }
  const rows = [batchRowsOf(blocks, { ...ALL, ...options })]
  return { name: `${range.from}-${range.to}:${last.blockhash}`, range, rows, finalizedSlot, tipSlot: last.slot }
}

/** Rows that no store accepts: a string in the column of the slot, and no other columns. */
export function brokenRows(): BatchRows {
  const { texts, tables } = new BatchRows()
  const columns: Table['columns'] = [{ name: 'slot', type: 'text', help: '' }]
  const rewards = new TableRows({ ...tableOf('rewards'), columns }, texts)
  rewards.add(texts.add('not a slot'))
  return { texts, tables: { ...tables, rewards } }
}

/** All rows of all tables, each as the values of its columns. */
export function listRows(pieces: readonly BatchRows[]): Readonly<Record<TableName, readonly Row[]>> {
  return Object.fromEntries(TABLES.map(({ name }) => [name, [...rowsIn(pieces, name)]])) as Record<TableName, Row[]>
}
