import { messageOf } from '../../core/error.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { openWorkerPort } from '../../platform/process/worker.ts'
import { openTipCounter, type TipEvent } from './counter.ts'
import { openExistingLedger } from './ledger-file.ts'
import { openReopeningCounter } from './reopening-counter.ts'

/** A batch to count. */
export type ToCounter = readonly TipEvent[]

/** `message` of a failure says what is wrong with the file. */
export type FromCounter =
  | { readonly kind: 'ready' }
  | { readonly kind: 'counted'; readonly countedMs: number }
  | { readonly kind: 'failed'; readonly message: string }

/**
 * Entry file of the thread that counts tips. A statement of the database holds its thread, and a checkpoint of it waits for the disk, for up to
 * 30 ms: the event loop that sends transactions must not.
 */
const link = openWorkerPort<ToCounter, FromCounter>()
if (link === undefined) throw new Error('this file runs only as a worker thread')
const { post } = link
const folder = String(link.data)
const counter = await openReopeningCounter({
  openLedger: () => openExistingLedger(folder, { clock: systemClock }),
  openCounter: (database) => openTipCounter(database, systemClock),
})
link.onMessage((batch) => {
  counter.count(batch).then(
    () => post({ kind: 'counted', countedMs: counter.countedMs }),
    (error: unknown) => post({ kind: 'failed', message: messageOf(error) }),
  )
})
link.onEnd(() => void counter[Symbol.asyncDispose]())
post({ kind: 'ready' })
