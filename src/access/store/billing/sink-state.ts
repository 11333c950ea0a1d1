import { ServiceError } from '../../../core/error.ts'
import type { SqlReader, SqlWriter } from '../../../platform/db/sql.ts'
import type { TableRows } from '../rows.ts'
import type { BillingTablesDeps } from './deps.ts'
import type { BillingStore } from './store.ts'
import { BILLING_STATE_TABLE, type BillingState } from './tables.ts'

/** How far the events of each sink are, and which process has the right to send them. */
export function createSinkStates({
  database,
  rows,
  change,
}: BillingTablesDeps): Pick<BillingStore, 'state' | 'begin' | 'lease' | 'release' | 'setPaused'> {
  const states = rows(BILLING_STATE_TABLE)
  return {
    state: (sink) => readSinkState(database, rows, sink),
    begin: (given) =>
      database.change(async (tx) => {
        const found = await readSinkState(tx, rows, given.sink)
        if (found === undefined) await tx.run(states.insert, states.encode(given))
        return found ?? given
      }),
    lease: (sink, { owner, nowMs, untilMs, seen }) =>
      database.change(async (tx) => {
        const found = await readSinkState(tx, rows, sink)
        if (found === undefined) throw nothingSent(sink)
        const isValid = found.owner !== null && found.owner !== owner && found.leaseUntil > nowMs
        const isSeen = found.owner === seen?.owner && found.leaseUntil === seen?.leaseUntil
        if (isValid && !isSeen) return undefined
        return changeSinkState(tx, rows, sink, { owner, leaseUntil: untilMs })
      }),
    release: (sink, owner) =>
      database.change(async (tx) => {
        if ((await readSinkState(tx, rows, sink))?.owner === owner)
          await changeSinkState(tx, rows, sink, { owner: null, leaseUntil: 0 })
      }),
    setPaused: (context, sink, paused) =>
      change(context, async (_records, tx) => {
        await changeSinkState(tx, rows, sink, { paused })
        return { audit: { action: paused ? 'billing.pause' : 'billing.resume', subjects: [sink] }, result: undefined }
      }),
  }
}

export async function readSinkState(on: SqlReader, rows: TableRows, sink: string): Promise<BillingState | undefined> {
  const states = rows(BILLING_STATE_TABLE)
  const [row] = await on.rows(states.select('WHERE sink = ?'), [sink])
  return row && states.decode(row)
}

export async function changeSinkState(
  tx: SqlWriter,
  rows: TableRows,
  sink: string,
  changes: Partial<BillingState>,
): Promise<BillingState> {
  const before = await readSinkState(tx, rows, sink)
  if (before === undefined) throw nothingSent(sink)
  const after = { ...before, ...changes }
  const states = rows(BILLING_STATE_TABLE)
  await tx.run(states.upsert, states.encode(after))
  return after
}

function nothingSent(sink: string): ServiceError {
  return new ServiceError('not-found', `nothing was ever sent to ${sink} from this store`, {
    fix: 'Set billing.sink in the configuration and start sluice serve.',
  })
}
