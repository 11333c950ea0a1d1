import { catalogueOf, openDuckDatabase } from '../../platform/db/duckdb.ts'
import { keepCompiledSource } from '../../platform/process/child.ts'
import { delay, systemClock } from '../../platform/process/clock.ts'
import { BlockFault } from '../../solana/chain-block.ts'
import type { GeyserAccount } from '../../solana/geyser/block.ts'
import { openClickHouseStore } from '../clickhouse/store.ts'
import { BatchRows } from '../ingest/batch-rows.ts'
import { addAccountRow, addBlockRow, addTransactionRows, type BlockHead } from '../ingest/block-rows.ts'
import { type DecodedBlock, decodeRawBlock, type RawBlock } from '../ingest/raw-block.ts'
import type { Store } from '../store.ts'
import { createCacheRelease, mebibytes } from './cache-release.ts'
import { BASE_SCHEMA } from './ddl.ts'
import type {
  DecodeResponse,
  FromStoreProcess,
  StoreOptions,
  StoreRequest,
  StoreResponses,
  ToStoreProcess,
} from './protocol.ts'
import { createQueryRunner, type QueryRunner } from './query-runner.ts'
import { prepareQueries } from './run-query.ts'
import { openDuckStore } from './store.ts'

/**
 * The process the embedded database lives in, forked by `store-process.ts`. A second process could not open the file, so writer and readers are
 * both here; the parent ends it when a query cannot be stopped otherwise. With the operator's ClickHouse it decodes and writes; queries go past it.
 */
const decoded = new Map<number, ReadBlock>()
let store: Store | undefined
let queries: QueryRunner | undefined
let options: StoreOptions | undefined
/** Share of the memory that rows may take which are in the log and not yet in the file. */
const LOG_SHARE = 1 / 8
/** Share of it that pages of the file may take when nobody asks for them. */
const REST_SHARE = 1 / 8
/**
 * Pages of a new file. Each column of each table that rows were added to holds at least one until the log is folded into the file: 40 MB with the
 * engine's own 256 KiB.
 */
const PAGE_BYTES = 64 * 1024
const UNAVAILABLE = { ok: false, type: 'SOCKET_TIMEOUT', message: 'The database is not open.' } as const

async function handle(request: StoreRequest): Promise<StoreResponses[StoreRequest['kind']]> {
  switch (request.kind) {
    case 'open': {
      options = request.options
      const { clickhouse, path, memoryBytes, threads } = options
      if (clickhouse !== undefined) {
        const wait = (ms: number): Promise<void> => delay(systemClock, ms)
        store = await openClickHouseStore(clickhouse, { nowMs: Date.now, wait })
        return store.progress()
      }
      const settings = {
        // The engine counts this thread, which writes; queries are for the others.
        threads: String(threads + 1),
        // A query gives its thread to the next one after some pieces: a short one does not wait for the end of a long one.
        scheduler_process_partial: 'true',
        // Half the work of writing is folding the log into the file; a larger log means doing it less often, and a start after a kill that reads more.
        checkpoint_threshold: mebibytes(memoryBytes * LOG_SHARE),
        memory_limit: mebibytes(memoryBytes),
        default_block_size: String(PAGE_BYTES),
      }
      // Reading blocks and writing them is done on this thread: whoever asks must not hold up what he asks for.
      const database = await openDuckDatabase(path, settings, { workersYield: true })
      const release = await createCacheRelease(database, {
        memoryBytes,
        restBytes: memoryBytes * REST_SHARE,
        isAsked: () => queries?.isRunning() ?? false,
      })
      store = await openDuckStore(database, Date.now, release)
      await prepareQueries(database, `${catalogueOf(path)}.${BASE_SCHEMA}`)
      queries = createQueryRunner(database, options.results)
      return store.progress()
    }
    case 'query':
      return queries?.run(request.id, request.job, request.owner) ?? UNAVAILABLE
    case 'interrupt':
      queries?.interrupt(request.id, request.why)
      return null
    case 'read':
      return queries?.read(request.id) ?? new Uint8Array()
    case 'discard':
      queries?.discard(request.id)
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

/** A block becomes rows as soon as it is read: rows are arrays of numbers, which the collector need not look through while they wait. */
type ReadBlock = {
  readonly rows: BatchRows
  readonly head: BlockHead
  readonly accounts: DecodedBlock['accounts']
  readonly source: RawBlock['source']
}

function decode(id: number, raw: RawBlock): DecodeResponse {
  if (options === undefined) throw new Error('the database is not open')
  try {
    const { block, accounts } = decodeRawBlock(raw)
    const rows = new BatchRows()
    const head = addTransactionRows(rows, block, options.rows)
    decoded.set(id, { rows, head, accounts, source: raw.source })
    const { slot, blockhash, parentSlot, parentBlockhash, transactions } = head
    return { ok: true, link: { slot, blockhash, parentSlot, parentBlockhash }, transactions }
  } catch (fault) {
    // A value that its column cannot hold is the block's fault, too: one bad block must not stop the others.
    if (fault instanceof BlockFault || fault instanceof RangeError) return { ok: false, fault: fault.message }
    throw fault
  }
}

async function write(request: Extract<StoreRequest, { kind: 'write' }>): Promise<void> {
  const pieces: BatchRows[] = []
  /** What is known only now: how final the blocks are, and the last write of each account, which has one row. */
  const last = new BatchRows()
  const accounts = new Map<string, { slot: number; account: GeyserAccount }>()
  for (const id of request.ids) {
    const one = decoded.get(id)
    if (one === undefined) throw new Error(`block ${id} is not here`)
    const { slot } = one.head
    const commitment = slot <= request.finalizedSlot ? 'finalized' : 'confirmed'
    addBlockRow(last, one.head, { commitment, source: one.source })
    for (const [key, account] of one.accounts) accounts.set(key, { slot, account })
    pieces.push(one.rows)
  }
  for (const [key, { slot, account }] of accounts) addAccountRow(last, key, slot, account)
  const rows = [...pieces, last]
  const { name, range, finalizedSlot, tipSlot } = request
  await opened().write({ name, range, rows, finalizedSlot, tipSlot })
  for (const id of request.ids) decoded.delete(id)
}

function opened(): Store {
  if (store === undefined) throw new Error('the database is not open')
  return store
}

keepCompiledSource()
process.on('message', ({ seq, request }: ToStoreProcess) => {
  const reply = (message: FromStoreProcess): void => void process.send?.(message)
  handle(request).then(
    (response) => reply({ seq, ok: true, response }),
    (error: unknown) => reply({ seq, ok: false, message: error instanceof Error ? error.message : String(error) }),
  )
})
// Without its parent it has no work; the file is left as the last COMMIT left it.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
// A terminal's interrupt reaches the whole process group; the parent decides when this one ends.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
