import { RingFollower } from '../../evm/ring/follow.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { openWorkerPort, processTimeMs } from '../../platform/process/worker.ts'
import { loadRingMapper, openLiveRing, type RingMode } from '../../platform/ring-file/reader.ts'
import type { BlockContent, SourceMessage } from './message.ts'
import { ReadRing, type ReadRingOptions } from './read-ring.ts'
import type { Wanted } from './wanted-events.ts'

export type RingThreadOptions = ReadRingOptions & {
  start: 'newest-block' | 'oldest' | { seqno: number }
  mode: RingMode
  /** How often the path is looked at, for another file or for a first one. */
  checkMs: number
}

export type ToRingThread = ({ kind: 'wanted' } & Wanted) | { kind: 'taken'; posts: number }

/** The node's own reader sleeps as long when nothing is there. */
const IDLE_MS = 1
/**
 * While events keep coming the next look follows sooner than any timer would: figures are told when their block ends, not when the
 * reader happens to wake. A nap blocks this thread alone, which has nothing else to do.
 */
const NAP_MS = 0.2
const AWAKE_MS = 50
/**
 * Posts not yet taken by the other thread. When that thread is too busy the ring itself is the queue: it holds minutes, and what it
 * overwrites is told as a gap. So memory stays bounded and no loss is hidden.
 */
const POSTS_MAX = 16
const HELD_MS = 2

/** The entry of the thread that reads the ring: it waits for the ring alone, never for a client. */
const port = openWorkerPort<ToRingThread, SourceMessage[]>()
if (port !== undefined) {
  const options = port.data as RingThreadOptions
  const { path, start, mode, checkMs } = options
  const follower = new RingFollower(() => openLiveRing(path, mapper), { start, checkMs })
  const ring = new ReadRing(follower, options, (block) => post([{ kind: 'block', block }], bytesOf(block)))
  const napping = new Int32Array(new SharedArrayBuffer(4))
  let isEnding = false
  let posts = 0
  let newsAtMs = Number.NEGATIVE_INFINITY

  port.onMessage((message) => {
    if (message.kind === 'wanted') ring.shortage(message)
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
    if (posts >= POSTS_MAX) return void systemClock.setTimer(HELD_MS, run)
    const nowMs = systemClock.monotonicMs()
    const { messages, isIdle } = ring.step(nowMs, processTimeMs())
    if (messages.length > 0) post(messages)
    if (!isIdle) newsAtMs = nowMs
    if (nowMs - newsAtMs > AWAKE_MS) return void systemClock.setTimer(IDLE_MS, run)
    if (isIdle) Atomics.wait(napping, 0, 0, NAP_MS)
    setImmediate(run)
  }
  run()
}

/** They change hands instead of being copied. */
function bytesOf(block: BlockContent): ArrayBuffer[] {
  return [block.descriptors, block.payloads, block.payloadAt].map(({ buffer }) => buffer as ArrayBuffer)
}
