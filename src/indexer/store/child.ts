import { messageOf } from '../../core/error.ts'
import { catalogueOf, openDuckDatabase } from '../../platform/db/duckdb.ts'
import { keepCompiledSource } from '../../platform/process/child.ts'
import { delay, systemClock } from '../../platform/process/clock.ts'
import { loadMemoryRelease } from '../../platform/process/memory-release.ts'
import { BlockFault } from '../../solana/chain-block.ts'
import { openClickHouseStore } from '../clickhouse/store.ts'
import { createCacheRelease, mebibytes } from '../duckdb/cache-release.ts'
import { prepareQueries } from '../duckdb/customer-schema.ts'
import { BASE_SCHEMA } from '../duckdb/ddl.ts'
import { createFormatSlices } from '../duckdb/format-slices.ts'
import { createIngestActivity } from '../duckdb/ingest-activity.ts'
import { createQueryRunner, type QueryRunner } from '../duckdb/query-runner.ts'
import { openDuckStore } from '../duckdb/store.ts'
import { BatchRows } from '../ingest/batch-rows.ts'
import { addAccountRows, addBlockRow, addTransactionRows, type BlockHead } from '../ingest/block-rows.ts'
import { type DecodedBlock, decodeRawBlock, type RawBlock } from '../ingest/raw-block.ts'
import type {
  DecodeResponse,
  FromStoreProcess,
  StoreOptions,
  StoreRequest,
  StoreResponses,
  ToStoreProcess,
} from './protocol.ts'
import type { Store } from './store.ts'

/**
 * Entry point of the database process, which `process.ts` forks. Only one process can open the data file, so it runs both the writer and the
 * queries; the parent ends it when a query cannot be stopped otherwise. With the operator's ClickHouse it only decodes and writes.
 */
const decoded = new Map<number, DecodedRows>()
let store: Store | undefined
let queries: QueryRunner | undefined
let options: StoreOptions | undefined
/** Why final states of accounts could not be moved, until the next response to a write reports it. */
let moveFault: string | null = null
const ingest = createIngestActivity()
/** Share of the memory for rows that are in the write-ahead log and not yet in the file. */
const LOG_SHARE = 1 / 8
/** Share of the memory for cached pages of the file while no query runs. */
const IDLE_SHARE = 1 / 32
/**
 * Block size of a new file. Each column of each table with new rows takes at least one block until the checkpoint: 40 MB with the engine's default of
 * 256 KiB.
 */
const PAGE_BYTES = 64 * 1024
const UNAVAILABLE = { ok: false, type: 'SOCKET_TIMEOUT', message: 'The database is not open.' } as const

async function handle(request: StoreRequest): Promise<StoreResponses[StoreRequest['kind']]> {
  switch (request.kind) {
    case 'open': {
      options = request.options
      const {
        clickhouse,
        path,
        memoryBytes,
        logTextBytesMax,
        idleBytesMax = Number.POSITIVE_INFINITY,
        threads,
      } = options
      if (clickhouse !== undefined) {
        const wait = (ms: number): Promise<void> => delay(systemClock, ms)
        store = await openClickHouseStore(clickhouse, { nowMs: Date.now, wait })
        return store.progress()
      }
      const settings = {
        // The engine counts this thread, which writes; the others run queries.
        threads: String(threads + 1),
        // A query yields its thread after some chunks, so that a short query does not wait for the end of a long one.
        scheduler_process_partial: 'true',
        // Checkpoints are half the work of writing. A larger log makes them rarer, and a start after a kill slower.
        checkpoint_threshold: mebibytes(memoryBytes * LOG_SHARE),
        memory_limit: mebibytes(memoryBytes),
        default_block_size: String(PAGE_BYTES),
      }
      // This thread decodes and writes blocks, so queries must not block it.
      const database = await openDuckDatabase(path, settings, { workersYield: true })
      const release = await createCacheRelease(database, {
        memoryBytes,
        idleBytes: Math.min(memoryBytes * IDLE_SHARE, idleBytesMax),
        isQueried: () => queries?.isRunning() ?? false,
      })
      // A checkpoint frees many small pieces, between which the C library keeps what is free.
      const { trim } = await loadMemoryRelease()
      const onCheckpoint = async (): Promise<void> => {
        await release()
        trim?.()
      }
      const onMoveFailed = (error: unknown): void => void (moveFault = messageOf(error))
      store = await openDuckStore(database, Date.now, { onCheckpoint, onMoveFailed, logTextBytesMax })
      await prepareQueries(database, `${catalogueOf(path)}.${BASE_SCHEMA}`)
      const slices = createFormatSlices(undefined, { isIngesting: ingest.isActive })
      queries = createQueryRunner(database, options.results, { slices })
      return store.progress()
    }
    case 'query':
      return queries?.run(request.id, request.job, request.owner) ?? UNAVAILABLE
    case 'interrupt':
      queries?.interrupt(request.id, request.reason)
      return null
    case 'read':
      return queries?.read(request.id) ?? UNAVAILABLE
    case 'discard':
      queries?.discard(request.id)
      return null
    case 'close':
      await opened()[Symbol.asyncDispose]()
      return null
    case 'decode':
      return ingest.run(() => decode(request.id, request.raw))
    case 'write':
      await ingest.run(() => write(request))
      return takeMoveFault()
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

/** Blocks are kept as rows until they are written: rows are typed arrays, which the garbage collector does not scan. */
type DecodedRows = {
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
    // Whatever a node sends, it must not stop the blocks of others: a value out of the range of its column is a fault of the block, too.
    return { ok: false, fault: fault instanceof BlockFault ? fault.message : String(fault) }
  }
}

async function write(request: Extract<StoreRequest, { kind: 'write' }>): Promise<void> {
  const pieces: BatchRows[] = []
  /** Rows that are known only now: the blocks with their commitment, and the last write of each account. */
  const [last, overwritten] = [new BatchRows(), new BatchRows()]
  const blocks: { slot: number; accounts: DecodedBlock['accounts'] }[] = []
  for (const id of request.ids) {
    const one = decoded.get(id)
    if (one === undefined) throw new Error(`block ${id} is not decoded`)
    const { slot } = one.head
    const commitment = slot <= request.finalizedSlot ? 'finalized' : 'confirmed'
    addBlockRow(last, one.head, { commitment, source: one.source })
    blocks.push({ slot, accounts: one.accounts })
    pieces.push(one.rows)
  }
  const { name, range, rewindFrom, finalizedSlot, tipSlot } = request
  addAccountRows({ rows: last, overwritten }, blocks, finalizedSlot)
  const rows = [...pieces, last]
  await opened().write({ name, range, rewindFrom, rows, overwritten, finalizedSlot, tipSlot })
  for (const id of request.ids) decoded.delete(id)
}

function takeMoveFault(): string | null {
  const fault = moveFault
  moveFault = null
  return fault
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
// The parent is gone. The file stays as the last COMMIT left it.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
// A terminal sends SIGINT to the whole process group; the parent decides when this process ends.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
