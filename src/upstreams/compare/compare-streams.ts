import type { Clock } from '../../core/clock.ts'
import { ServiceError } from '../../core/error.ts'
import { openGrpcSession } from '../../platform/grpc/client.ts'
import { createMessageReader, frameMessage } from '../../platform/grpc/framing.ts'
import { createPinnedAddress, type RemoteAddress } from '../../platform/net/pinned-address.ts'
import { type ComparisonResult, type Side, StreamComparison } from './comparison.ts'
import { pingOf, readUpdate, requestOf, STREAM_PATHS, type StreamFilter, type StreamKind } from './stream-kinds.ts'

export type StreamEndpoint = {
  readonly kind: StreamKind
  readonly address: RemoteAddress
  /** With the token; never printed. */
  readonly headers: Readonly<Record<string, string>>
}

export type CompareOptions = StreamFilter & {
  readonly first: StreamEndpoint
  readonly second: StreamEndpoint
  /** The time in which transactions count. */
  readonly countMs: number
}

export type CompareDeps = {
  readonly clock: Clock
  /** About once a second. */
  onProgress?(progress: CompareProgress): void
  /** Ends the comparison early. */
  readonly stopped: Promise<unknown>
}

export type CompareProgress = { readonly countedMs: number; readonly result: ComparisonResult }

export type CompareOutcome = {
  readonly result: ComparisonResult
  readonly countedMs: number
  /** Why it ended before its time, other than by `stopped`. */
  readonly failure: string | undefined
}

const SETTLE_MS = 2000
/** About 100 MB. */
const TRANSACTIONS_MAX = 400_000
const CONNECT_MS = 10_000
/** For both streams to deliver a first transaction. */
const FIRST_TRANSACTION_MS = 30_000
const PROGRESS_MS = 1000
const MESSAGE_BYTES_MAX = 64 * 1024 * 1024

/** Opens both streams from this machine and compares when each delivers a transaction. Ends by itself `SETTLE_MS` after `countMs`. */
export async function compareStreams(options: CompareOptions, deps: CompareDeps): Promise<CompareOutcome> {
  const { clock } = deps
  const comparison = new StreamComparison({ settleMs: SETTLE_MS, transactionsMax: TRANSACTIONS_MAX })
  const ended = Promise.withResolvers<string | undefined>()
  void deps.stopped.then(() => ended.resolve(undefined))
  const openedMs = clock.monotonicMs()
  using streams = new DisposableStack()
  for (const side of ['first', 'second'] as const)
    streams.use(await openSide(side, options, { clock, comparison, onEnd: ended.resolve }))

  const countedMsAt = (nowMs: number) =>
    Math.min(options.countMs, Math.max(0, nowMs - (comparison.countsFromMs ?? nowMs)))

  function look(): void {
    const nowMs = clock.monotonicMs()
    deps.onProgress?.({ countedMs: countedMsAt(nowMs), result: comparison.result(nowMs) })
    const fromMs = comparison.countsFromMs
    if (fromMs === undefined) {
      if (nowMs - openedMs < FIRST_TRANSACTION_MS) return
      return ended.resolve(`no transaction came from both streams within ${FIRST_TRANSACTION_MS / 1000} s`)
    }
    if (nowMs >= fromMs + options.countMs + SETTLE_MS) ended.resolve(undefined)
    else if (nowMs >= fromMs + options.countMs) comparison.stopCounting()
  }
  streams.adopt(clock.setRepeating(PROGRESS_MS, look), (timer) => timer.cancel())
  const failure = await ended.promise
  const nowMs = clock.monotonicMs()
  return { result: comparison.result(nowMs), countedMs: countedMsAt(nowMs), failure }
}

async function openSide(
  side: Side,
  options: CompareOptions,
  {
    clock,
    comparison,
    onEnd,
  }: { readonly clock: Clock; readonly comparison: StreamComparison; readonly onEnd: (failure: string) => void },
): Promise<Disposable> {
  const { kind, address: remote, headers } = options[side]
  const address = createPinnedAddress(remote, { allowPrivate: true })
  const opening = await openGrpcSession({ metadata: headers, connectTimeoutMs: CONNECT_MS }, { clock, address })
  if (!opening.ok) {
    throw new ServiceError('no-upstream', `the ${side} stream cannot be opened: ${opening.loss.message}`, {
      fix: `Check the address of --${side}: its gRPC port, and http or https.`,
    })
  }
  const { session } = opening
  const stream = session.open(STREAM_PATHS[kind], {})
  const reader = createMessageReader({ messageBytesMax: MESSAGE_BYTES_MAX }, (message) => {
    const update = readUpdate(kind, message)
    if (update === 'ping') stream.write(frameMessage(pingOf(kind)))
    else if (update !== undefined) comparison.add(side, update.signature, clock.monotonicMs())
  })
  stream.onData((bytes, release) => {
    const problem = reader.push(bytes, release)
    if (problem !== undefined) onEnd(`the ${side} stream cannot be read: ${problem.message ?? problem.code}`)
  })
  stream.onEnd(({ status }) =>
    onEnd(`the ${side} stream ended: status ${status.code}${status.message ? `, ${status.message}` : ''}`),
  )
  stream.write(frameMessage(requestOf(kind, options)))
  return session
}
