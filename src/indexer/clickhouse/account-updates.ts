import { type Table, tableOf } from '../schema.ts'

/**
 * Accounts by slot. The table `accounts` has one row for each account, so a newer state replaces the one before it, and without transactions it could
 * not be restored safely when the newer one is of an abandoned fork. States of recent slots are therefore rows of their own, which a rewind deletes
 * like those of other tables, and `accounts` only gets those that are final.
 */

/** A table of the base database. */
export type StoredTable = Pick<Table, 'columns' | 'key'> & {
  readonly name: string
  readonly slotsPerPartition?: number
}

/** More than the 32 slots that Solana needs to finalize a block; each lookup of an account reads the keys of about two partitions. */
const SLOTS_PER_PARTITION = 64

export const ACCOUNT_UPDATES: StoredTable = {
  name: '_account_updates',
  key: ['pubkey', 'slot'],
  columns: tableOf('accounts').columns,
  slotsPerPartition: SLOTS_PER_PARTITION,
}

const COLUMNS = ACCOUNT_UPDATES.columns.map(({ name }) => name).join(', ')

/** The newest state of each account: that of the newest slot, otherwise the final one. (Old servers fail on ORDER BY with LIMIT inside a view.) */
export function accountsSelect(base: string): string {
  const updates = `${base}.${ACCOUNT_UPDATES.name}`
  return `SELECT ${COLUMNS} FROM ${base}.accounts FINAL WHERE pubkey NOT IN (SELECT pubkey FROM ${updates})
    UNION ALL SELECT ${COLUMNS} FROM ${updates} FINAL WHERE (pubkey, slot) IN (SELECT pubkey, max(slot) FROM ${updates} GROUP BY pubkey)`
}

/** Slots below this one are in partitions whose slots are all final. */
export function finalPartitionsEnd(finalizedSlot: number): number {
  return Math.floor((finalizedSlot + 1) / SLOTS_PER_PARTITION) * SLOTS_PER_PARTITION
}

/** Lists the partitions below a slot that `finalPartitionsEnd` returned, oldest first. */
export function partitionsBelow(base: string, end: number): string {
  return `SELECT DISTINCT intDiv(slot, ${SLOTS_PER_PARTITION}) AS partition FROM ${base}.${ACCOUNT_UPDATES.name} WHERE slot < ${end} ORDER BY partition`
}

/**
 * Copies the newest states below a slot into `accounts`. Blocks with accounts are written in the order of the chain, so they are newer than what
 * `accounts` has. May be repeated, with a higher version.
 */
export function promotion(base: string, end: number, version: number): string {
  const updates = `${base}.${ACCOUNT_UPDATES.name}`
  const newest = `SELECT pubkey, max(slot) FROM ${updates} WHERE slot < ${end} GROUP BY pubkey`
  return `INSERT INTO ${base}.accounts (${COLUMNS}, _version) SELECT ${COLUMNS}, ${version} FROM ${updates} FINAL
    WHERE slot < ${end} AND (pubkey, slot) IN (${newest})`
}

/** After the promotion is acknowledged, the oldest first: what stays has higher slots, so that no account goes back to an older state. */
export function partitionDrop(base: string, partition: number): string {
  return `ALTER TABLE ${base}.${ACCOUNT_UPDATES.name} DROP PARTITION ${partition}`
}
