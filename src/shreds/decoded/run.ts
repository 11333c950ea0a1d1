import type { Clock } from '../../core/clock.ts'
import { Engine } from './engine.ts'
import { openInputReader } from './input-ring.ts'
import { createLookupTables } from './lookup-tables.ts'
import { UpstreamMerge } from './node-streams/merge.ts'
import { OutputDelivery } from './output-delivery.ts'
import { openOutputWriter } from './output-ring.ts'
import type { DecodedThreadOptions, FromDecoded, ToDecoded } from './protocol.ts'
import { FEC_SET_BYTES } from './shred-cells.ts'

export type RunDecodedDeps = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  post(message: FromDecoded): void
  /** The next message for the thread, if one has come. */
  poll(): ToDecoded | undefined
}

const REPORT_MS = 200
/** How long the thread sleeps without shreds before it looks for messages. */
const IDLE_MS = 10
/** Shreds between two looks for messages. */
const SHREDS_PER_TURN = 256
/** Lookup tables requested at a time; a report period later the next ones. */
const TABLES_PER_REQUEST = 100

/** Runs in its own thread: reads the shreds that the relay accepted, decodes them, and writes what they contain for the readers. Returns after `stop`. */
export function runDecoded(options: DecodedThreadOptions, { clock, post, poll }: RunDecodedDeps): void {
  const input = openInputReader(options.input)
  const output = openOutputWriter(options.output)
  const tables = createLookupTables({ tablesMax: options.lookupTablesMax })
  const delivery = new OutputDelivery(output, tables)
  const engine = new Engine(options.engine, (event) => delivery.deliver(event))
  const { upstream } = options
  const merge =
    upstream &&
    new UpstreamMerge(upstream.records, upstream, {
      newestSlot: () => engine.newestSlot,
      deliver: (place, update, hasUnknownTable) => delivery.deliverUpstream(place, update, hasUnknownTable),
    })
  delivery.merge = merge
  engine.onRestart = (isNewChain) => {
    delivery.deliver({ kind: 'started' })
    if (isNewChain) merge?.restart()
  }
  let reportedMs = clock.monotonicMs()

  function report(): void {
    post({
      kind: 'report',
      counts: delivery.countsOf(engine.counts),
      newestSlot: engine.newestSlot,
      openSlots: engine.openSlots,
      heldBytes: engine.heldSets * FEC_SET_BYTES,
      lookupTables: tables.size,
      unresolved: delivery.unresolved,
      dataSetsTooLarge: delivery.dataSetsTooLarge,
      inputDropped: input.dropped(),
      merge: merge && { counts: merge.counts, leads: merge.takeLeads() },
      slots: delivery.takeSlots(),
    })
    const { wanted, dropped } = tables.takeChanges(TABLES_PER_REQUEST)
    if (wanted.length > 0 || dropped.length > 0) post({ kind: 'tables', wanted, dropped })
  }

  /** False when the thread stops. */
  function apply(message: ToDecoded): boolean {
    if (message.kind === 'stop') return false
    if (message.kind === 'slot-length') engine.setSlotMs(message.ms)
    else for (const account of message.accounts) tables.update(account)
    return true
  }

  const push = engine.push.bind(engine)
  // What waits from before a restart is older than the slots that the engine will know.
  input.discard()
  delivery.deliver({ kind: 'started' })
  post({ kind: 'ready' })
  for (let isRunning = true; isRunning; ) {
    const taken = input.read(SHREDS_PER_TURN, push)
    const isWorking = engine.work()
    const hasMore = merge?.poll() === false
    if (taken === 0) {
      engine.advance(clock.monotonicMs() * 1e6)
      if (!isWorking && !hasMore) input.wait(IDLE_MS)
    }
    for (let message = poll(); message !== undefined; message = poll()) isRunning &&= apply(message)
    const nowMs = clock.monotonicMs()
    if (nowMs - reportedMs < REPORT_MS) continue
    reportedMs = nowMs
    report()
  }
  engine.end()
  report()
  post({ kind: 'stopped' })
}
