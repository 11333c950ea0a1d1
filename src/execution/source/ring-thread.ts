import { RingFollower } from '../../evm/ring/follow.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { openWorkerPort, processTimeMs } from '../../platform/process/worker.ts'
import { loadRingMapper, openLiveRing, type RingMode } from '../../platform/ring-file/reader.ts'
import type { BlockContent, SourceMessage } from './message.ts'
import type { RawEventSelection } from './raw-event-demand.ts'
import { RingProcessor, type RingProcessorOptions } from './ring-processor.ts'

export type RingThreadOptions = RingProcessorOptions & {
  start: 'newest-block' | 'oldest' | { seqno: number }
  mode: RingMode
  /** How often the path is checked for a first or another file. */
  checkMs: number
}

export type ToRingThread = ({ kind: 'select-raw-events' } & RawEventSelection) | { kind: 'taken'; posts: number }

/** Sleep when there are no events, as in the node's own reader. */
const IDLE_MS = 1
/**
 * While events arrive, the next poll follows sooner than a timer could fire, so that figures are published when their block ends.
 * `Atomics.wait` blocks only this thread, which has no other work.
 */
const WAIT_MS = 0.2
const ACTIVE_MS = 50
/**
 * Posts that the thread of the execution service has not taken yet. When it is too busy, reading stops and the ring itself is the queue:
 * it holds minutes, and events that it overwrites are reported as a gap. Memory stays bounded and no loss is hidden.
 */
const POSTS_MAX = 16
const BACKPRESSURE_MS = 2

/** Entry point of the thread that reads the ring. It never waits for a client. */
const port = openWorkerPort<ToRingThread, SourceMessage[]>()
if (port !== undefined) {
  const options = port.data as RingThreadOptions
  const { path, start, mode, checkMs } = options
  const follower = new RingFollower(() => openLiveRing(path, mapper), { start, checkMs })
  const ring = new RingProcessor(follower, options, (block) => post([{ kind: 'block', block }], buffersOf(block)))
  const waitCell = new Int32Array(new SharedArrayBuffer(4))
  let isEnding = false
  let posts = 0
  let lastEventsMs = Number.NEGATIVE_INFINITY

  port.onMessage((message) => {
    if (message.kind === 'select-raw-events') ring.selectRawEvents(message)
    else posts -= message.posts
  })
  port.onEnd(() => {
    isEnding = true
  })

  function post(messages: SourceMessage[], transfer?: ArrayBuffer[]): void {
    posts += 1
    port?.post(messages, transfer)
  }

  const mapper = await loadRingMapper(path, mode)
  const run = (): void => {
    if (isEnding) return follower[Symbol.dispose]()
    if (posts >= POSTS_MAX) return void systemClock.setTimer(BACKPRESSURE_MS, run)
    const nowMs = systemClock.monotonicMs()
    const { messages, isIdle } = ring.step(nowMs, processTimeMs())
    if (messages.length > 0) post(messages)
    if (!isIdle) lastEventsMs = nowMs
    if (nowMs - lastEventsMs > ACTIVE_MS) return void systemClock.setTimer(IDLE_MS, run)
    if (isIdle) Atomics.wait(waitCell, 0, 0, WAIT_MS)
    setImmediate(run)
  }
  run()
}

/** These are transferred to the thread of the execution service, not copied. */
function buffersOf(block: BlockContent): ArrayBuffer[] {
  return [block.descriptors, block.payloads, block.payloadAt].map(({ buffer }) => buffer as ArrayBuffer)
}
