import { delay, systemClock } from '../host/clock.ts'
import { catalogueOf, openDuckDatabase } from '../host/duckdb.ts'
import { BlockFault } from '../solana/block-from-geyser.ts'
import { addBlockRows, emptyRows, type Row } from './block-rows.ts'
import { openClickHouseStore } from './clickhouse-store.ts'
import { BASE_SCHEMA } from './duck-ddl.ts'
import { openDuckStore } from './duck-store.ts'
import { prepareQueries } from './query-run.ts'
import { createQueryRunner, type QueryRunner } from './query-runner.ts'
import { type DecodedBlock, decodeRawBlock, type RawBlock } from './raw-block.ts'
import { tableOf } from './schema.ts'
import type { Store } from './store.ts'
import type {
  DecodeAnswer,
  FromStoreProcess,
  StoreAnswers,
  StoreOptions,
  StoreRequest,
  ToStoreProcess,
} from './store-protocol.ts'

/**
 * The process the embedded database lives in, forked by `store-process.ts`. A second process could not open the file, so writer and readers are
 * both here; the parent ends it when a query cannot be stopped otherwise. With the operator's ClickHouse it decodes and writes; queries go past it.
 */
const decoded = new Map<number, DecodedBlock & { readonly source: RawBlock['source'] }>()
let store: Store | undefined
let queries: QueryRunner | undefined
let options: StoreOptions | undefined
/** Share of the memory that rows may take which are in the log and not yet in the file. */
const LOG_SHARE = 1 / 8
const PUBKEY_AT = tableOf('accounts').columns.findIndex(({ name }) => name === 'pubkey')
const UNAVAILABLE = { ok: false, type: 'SOCKET_TIMEOUT', message: 'The database is not open.' } as const

async function handle(request: StoreRequest): Promise<StoreAnswers[StoreRequest['kind']]> {
  switch (request.kind) {
    case 'open': {
      options = request.options
      const { clickhouse, path, memoryBytes, threads } = options
      if (clickhouse !== undefined) {
        const wait = (ms: number): Promise<void> => delay(systemClock, ms)
        store = await openClickHouseStore(clickhouse, { nowMs: Date.now, wait })
        return store.progress()
      }
      const database = await openDuckDatabase(path, {
        threads: String(threads),
        // Half the work of writing is folding the log into the file; a larger log means doing it less often, and a start after a kill that reads more.
        checkpoint_threshold: mebibytes(memoryBytes * LOG_SHARE),
        memory_limit: mebibytes(memoryBytes),
      })
      store = await openDuckStore(database, Date.now)
      await prepareQueries(database, `${catalogueOf(path)}.${BASE_SCHEMA}`)
      queries = createQueryRunner(database)
      return store.progress()
    }
    case 'query':
      return queries?.run(request.id, request.job) ?? UNAVAILABLE
    case 'interrupt':
      queries?.interrupt(request.id)
      return null
    case 'close':
      await opened()[Symbol.asyncDispose]()
      return null
    case 'decode':
      return decode(request.id, request.raw)
    case 'write':
      await write(request)
      return null
    case 'forget':
      for (const id of request.ids) decoded.delete(id)
      return null
    case 'rewind':
      await opened().rewind(request.fromSlot)
      return null
    case 'progress':
      return opened().progress()
  }
}

function decode(id: number, raw: RawBlock): DecodeAnswer {
  try {
    const block = decodeRawBlock(raw)
    decoded.set(id, { ...block, source: raw.source })
    const { slot, blockhash, parentSlot, parentBlockhash, transactions } = block.block
    return { ok: true, link: { slot, blockhash, parentSlot, parentBlockhash }, transactions: transactions.length }
  } catch (fault) {
    if (fault instanceof BlockFault) return { ok: false, fault: fault.message }
    throw fault
  }
}

async function write(request: Extract<StoreRequest, { kind: 'write' }>): Promise<void> {
  const rows = emptyRows()
  /** The table has one row for each account: the last write of the batch. */
  const accounts = new Map<unknown, Row>()
  for (const id of request.ids) {
    const one = decoded.get(id)
    if (one === undefined || options === undefined) throw new Error(`block ${id} is not here`)
    const commitment = one.block.slot <= request.finalizedSlot ? 'finalized' : 'confirmed'
    addBlockRows(rows, one.block, { commitment, source: one.source }, options.rows)
    for (const account of one.accounts) accounts.set(account[PUBKEY_AT], account)
  }
  rows.accounts.push(...accounts.values())
  const { name, range, finalizedSlot, tipSlot } = request
  await opened().write({ name, range, rows, finalizedSlot, tipSlot })
  for (const id of request.ids) decoded.delete(id)
}

function mebibytes(bytes: number): string {
  return `${Math.floor(bytes / 1024 / 1024)}MiB`
}

function opened(): Store {
  if (store === undefined) throw new Error('the database is not open')
  return store
}

process.on('message', ({ seq, request }: ToStoreProcess) => {
  const reply = (message: FromStoreProcess): void => void process.send?.(message)
  handle(request).then(
    (answer) => reply({ seq, ok: true, answer }),
    (error: unknown) => reply({ seq, ok: false, says: error instanceof Error ? error.message : String(error) }),
  )
})
// Without its parent it has no work; the file is left as the last COMMIT left it.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
// A terminal's interrupt reaches the whole process group; the parent decides when this one ends.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
