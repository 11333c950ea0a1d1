import type { Clock } from '../../core/clock.ts'
import { Engine } from './engine.ts'
import type { DecodedEvent, EngineStarted, SlotReport } from './events.ts'
import { openInputReader } from './input-ring.ts'
import { createLookupTables } from './lookup-tables.ts'
import { encodeEvent } from './messages.ts'
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
/** Reports of slots kept for the next message. */
const SLOT_REPORTS_MAX = 1024

/** Runs in its own thread: reads the shreds that the relay accepted, decodes them, and writes what they contain for the readers. Returns after `stop`. */
export function runDecoded(options: DecodedThreadOptions, { clock, post, poll }: RunDecodedDeps): void {
  const input = openInputReader(options.input)
  const output = openOutputWriter(options.output)
  const tables = createLookupTables({ tablesMax: options.lookupTablesMax })
  const engine = new Engine(options.engine, deliver)
  let slots: SlotReport[] = []
  let unresolved = 0
  let tooLong = 0
  let reportedMs = clock.monotonicMs()

  function deliver(event: DecodedEvent | EngineStarted): void {
    const parts = encodeEvent(event, (at) => {
      if (event.kind !== 'data-set') throw new TypeError('only a data set has transactions')
      const loaded = tables.resolve(event.transactions[at] as (typeof event.transactions)[number])
      if (!loaded.ok) unresolved += 1
      return loaded
    })
    if (!output.write(parts)) tooLong += 1
    if (event.kind === 'slot-report' && slots.length < SLOT_REPORTS_MAX) slots.push(event)
  }

  function report(): void {
    post({
      kind: 'report',
      counts: engine.counts,
      newestSlot: engine.newestSlot,
      openSlots: engine.openSlots,
      heldBytes: engine.heldSets * FEC_SET_BYTES,
      lookupTables: tables.size,
      unresolved,
      tooLong,
      inputDropped: input.dropped(),
      slots,
    })
    slots = []
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
  deliver({ kind: 'started' })
  post({ kind: 'ready' })
  for (let isRunning = true; isRunning; ) {
    const taken = input.read(SHREDS_PER_TURN, push)
    const isWorking = engine.work()
    if (taken === 0) {
      engine.advance(clock.monotonicMs() * 1e6)
      if (!isWorking) input.wait(IDLE_MS)
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
