import type { Clock, Timer } from '../../src/core/clock.ts'
import type { Random } from '../../src/core/random.ts'

/**
 * What can be wrong with a connection, in toxiproxy's words. `upstream` is the way from the client to the server,
 * `downstream` the way back. `toxicity` is the share of connections concerned, 1 by default.
 */
export type Toxic = {
  readonly stream?: 'upstream' | 'downstream'
  readonly toxicity?: number
} & ToxicKind

export type ToxicKind =
  /** Delays every byte by this time ± the jitter, in order. */
  | { readonly type: 'latency'; readonly latencyMs: number; readonly jitterMs?: number }
  /** Bytes per second. */
  | { readonly type: 'bandwidth'; readonly bytesPerSecond: number }
  /** Delays the end of the stream. */
  | { readonly type: 'slow_close'; readonly delayMs: number }
  /** Nothing passes any more; the connection is closed after the time, or never when it is 0. */
  | { readonly type: 'timeout'; readonly timeoutMs: number }
  /** The connection is reset (RST) after the time. */
  | { readonly type: 'reset_peer'; readonly timeoutMs?: number }
  /** Bytes arrive in pieces of about this size, with a pause between them. */
  | {
      readonly type: 'slicer'
      readonly averageSize: number
      readonly sizeVariation?: number
      readonly delayMs?: number
    }
  /** Closes the connection after this many bytes. */
  | { readonly type: 'limit_data'; readonly bytes: number }

/** Where a stage writes its output. */
export type Next = {
  data(chunk: Buffer): void
  end(): void
  /** These bytes are dropped. */
  drop(bytes: number): void
  close(): void
  reset(): void
}

/** One toxic in one direction of one connection. */
export type Stage = {
  data(chunk: Buffer): void
  end(): void
  /** The toxic was removed: its held data is forwarded at once. */
  release(): void
  /** The connection is gone. */
  stop(): void
}

export type ToxicDeps = { readonly clock: Clock; readonly random: Random }

export function createStage(toxic: ToxicKind, next: Next, deps: ToxicDeps): Stage {
  switch (toxic.type) {
    case 'latency':
      return latency(toxic, next, deps)
    case 'bandwidth':
      return bandwidth(toxic, next, deps)
    case 'slow_close':
      return slowClose(toxic, next, deps)
    case 'timeout':
      return afterTime(toxic.timeoutMs === 0 ? undefined : toxic.timeoutMs, 'drop', () => next.close(), next, deps)
    case 'reset_peer':
      return afterTime(toxic.timeoutMs ?? 0, 'pass', () => next.reset(), next, deps)
    case 'slicer':
      return slicer(toxic, next, deps)
    case 'limit_data':
      return limitData(toxic, next)
  }
}

/** Items that are forwarded later, in order, each not before its time. */
function createDelayLine(next: Next, clock: Clock) {
  const held: { dueMs: number; go: () => void }[] = []
  let timer: Timer | undefined
  function run(): void {
    timer = undefined
    while (held.length > 0 && (held[0] as { dueMs: number }).dueMs <= clock.monotonicMs()) held.shift()?.go()
    arm()
  }
  function arm(): void {
    if (held.length === 0 || timer !== undefined) return
    timer = clock.setTimer(Math.max(0, (held[0] as { dueMs: number }).dueMs - clock.monotonicMs()), run)
  }
  function add(dueMs: number, go: () => void): void {
    held.push({ dueMs: Math.max(dueMs, held.at(-1)?.dueMs ?? 0), go })
    arm()
  }
  return {
    data: (dueMs: number, chunk: Buffer) => add(dueMs, () => next.data(chunk)),
    end: (dueMs: number) => add(dueMs, () => next.end()),
    release() {
      timer?.cancel()
      timer = undefined
      for (const { go } of held.splice(0)) go()
    },
    stop() {
      timer?.cancel()
      held.length = 0
    },
  }
}

function latency(
  { latencyMs, jitterMs = 0 }: Extract<ToxicKind, { type: 'latency' }>,
  next: Next,
  { clock, random }: ToxicDeps,
): Stage {
  const line = createDelayLine(next, clock)
  const due = () => clock.monotonicMs() + Math.max(0, latencyMs + (random.float() * 2 - 1) * jitterMs)
  return {
    data: (chunk) => line.data(due(), chunk),
    end: () => line.end(due()),
    release: line.release,
    stop: line.stop,
  }
}

function bandwidth(
  { bytesPerSecond }: Extract<ToxicKind, { type: 'bandwidth' }>,
  next: Next,
  { clock }: ToxicDeps,
): Stage {
  const line = createDelayLine(next, clock)
  // Small enough for an even flow, large enough that the timers cost little.
  const pieceBytes = Math.max(1, Math.floor(bytesPerSecond / 50))
  let freeAtMs = 0
  return {
    data(chunk) {
      for (let at = 0; at < chunk.length; at += pieceBytes) {
        const piece = chunk.subarray(at, at + pieceBytes)
        freeAtMs = Math.max(freeAtMs, clock.monotonicMs()) + (piece.length * 1000) / bytesPerSecond
        line.data(freeAtMs, piece)
      }
    },
    end: () => line.end(freeAtMs),
    release: line.release,
    stop: line.stop,
  }
}

function slowClose({ delayMs }: Extract<ToxicKind, { type: 'slow_close' }>, next: Next, { clock }: ToxicDeps): Stage {
  const line = createDelayLine(next, clock)
  return {
    data: (chunk) => next.data(chunk),
    end: () => line.end(clock.monotonicMs() + delayMs),
    release: line.release,
    stop: line.stop,
  }
}

function afterTime(
  timeoutMs: number | undefined,
  data: 'drop' | 'pass',
  act: () => void,
  next: Next,
  { clock }: ToxicDeps,
): Stage {
  const timer = timeoutMs === undefined ? undefined : clock.setTimer(timeoutMs, act)
  return {
    data(chunk) {
      if (data === 'pass') next.data(chunk)
      else next.drop(chunk.length)
    },
    end() {
      if (data === 'pass') next.end()
    },
    release: () => timer?.cancel(),
    stop: () => timer?.cancel(),
  }
}

function slicer(
  { averageSize, sizeVariation = 0, delayMs = 0 }: Extract<ToxicKind, { type: 'slicer' }>,
  next: Next,
  { clock, random }: ToxicDeps,
): Stage {
  const line = createDelayLine(next, clock)
  let freeAtMs = 0
  return {
    data(chunk) {
      for (let at = 0; at < chunk.length; ) {
        const size = Math.max(1, Math.round(averageSize + (random.float() * 2 - 1) * sizeVariation))
        freeAtMs = Math.max(freeAtMs + delayMs, clock.monotonicMs())
        line.data(freeAtMs, chunk.subarray(at, at + size))
        at += size
      }
    },
    end: () => line.end(freeAtMs),
    release: line.release,
    stop: line.stop,
  }
}

function limitData({ bytes }: Extract<ToxicKind, { type: 'limit_data' }>, next: Next): Stage {
  let left = bytes
  return {
    data(chunk) {
      if (left > 0) next.data(chunk.subarray(0, left))
      left -= chunk.length
      if (left <= 0) next.close()
    },
    end: () => next.end(),
    release() {},
    stop() {},
  }
}
