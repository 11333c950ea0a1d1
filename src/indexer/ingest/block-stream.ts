import { type Backoff, createBackoff } from '../../core/backoff.ts'
import type { Timer } from '../../core/clock.ts'
import { createMessageReader, frameMessage } from '../../platform/grpc/framing.ts'
import { createPingReply } from '../../platform/grpc/ping-reply.ts'
import type { GrpcStream } from '../../platform/grpc/stream.ts'
import type { BaseDeps } from '../../platform/process/base-deps.ts'
import { CommitmentLevel, SlotStatus, SubscribeRequestSchema } from '../../solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../solana/geyser/protobuf.ts'
import { WireReader } from '../../solana/geyser/wire-reader.ts'
import type { Upstream } from '../../upstreams/upstream.ts'
import type { BankOfNode } from './final-banks.ts'
import type { RawBlock } from './raw-block.ts'

export type BlockStreamListener = {
  onBlock(raw: RawBlock, bank: BankOfNode | undefined): void
  /** A slot was confirmed or finalized, or the node marked it dead: one bank of the slot, where the node names banks. */
  onSlot(slot: number, status: 'seen' | 'finalized' | 'dead', bank: BankOfNode | undefined): void
  /** The stream is disconnected; blocks until the next connection have to be fetched. */
  onLost(reason: string): void
}

export type BlockStreamDeps = BaseDeps & {
  readonly upstream: Pick<Upstream, 'grpc'>
}

export type BlockStream = Disposable & {
  /** Back-pressure: the node waits while the listener is behind. */
  pause(): void
  resume(): void
}

/** Blocks with accounts are the largest messages of the protocol. */
const MESSAGE_BYTES_MAX = 256 * 1024 * 1024
/** A stream without data for this long is dead: slots come several times a second, pings every 10 to 15 s. */
const SILENCE_MS = 30_000
const RETRY = { firstMs: 250, maxMs: 15_000 }

/** Field numbers of SubscribeUpdate and its messages (geyser.proto). */
const UPDATE = { slot: 3, block: 5, ping: 6 } as const
const SLOT_FIELD = 1
const STATUS_FIELD = 3
const BANK_FIELD = { slot: 5, block: 14 } as const

/** Subscribes to confirmed blocks and slot updates. Reconnects with backoff. */
export function followBlocks(
  options: { readonly includeAccounts: boolean },
  deps: BlockStreamDeps,
  listener: BlockStreamListener,
): BlockStream {
  const { upstream, clock, log } = deps
  const backoff: Backoff = createBackoff(RETRY, deps.random)
  let stream: GrpcStream | undefined
  let timer: Timer | undefined
  let lastMs = clock.monotonicMs()
  let isPaused = false
  let isClosed = false
  let connection = 0

  async function connect(): Promise<void> {
    const opened = await upstream.grpc.open('/geyser.Geyser/Subscribe', {}, { isStream: true, isMovable: () => true })
    if (isClosed) {
      if (opened.ok) opened.stream.cancel()
      return
    }
    if (!opened.ok) return lost('no upstream offers gRPC')
    const opening = opened.stream
    stream = opening
    connection += 1
    lastMs = clock.monotonicMs()
    const replyToPing = createPingReply(opening, PING)
    const reader = createMessageReader({ messageBytesMax: MESSAGE_BYTES_MAX }, (message) =>
      onMessage(message, replyToPing),
    )
    opening.onData((bytes) => {
      lastMs = clock.monotonicMs()
      const problem = reader.push(bytes)
      if (problem !== undefined) opening.cancel()
    })
    opening.onEnd(({ status }) => {
      if (stream === opening) lost(status.message || `the stream ended with code ${status.code}`)
    })
    if (isPaused) opening.pause()
    opening.write(frameMessage(subscribeRequest(options)))
  }

  function onMessage(message: Uint8Array, replyToPing: () => void): void {
    const update = new WireReader(message)
    while (update.next()) {
      if (update.field === UPDATE.block) {
        backoff.reset()
        onBlockUpdate(message, update.inside())
      } else if (update.field === UPDATE.slot) onSlotUpdate(update.inside())
      else if (update.field === UPDATE.ping) replyToPing()
    }
  }

  function onBlockUpdate(message: Uint8Array, update: WireReader): void {
    let slot = 0
    let bank: BankOfNode | undefined
    while (update.next()) {
      if (update.field === SLOT_FIELD) slot = update.value
      if (update.field === BANK_FIELD.block) bank = { connection, id: update.wideValue }
    }
    listener.onBlock({ slot, source: 'stream', bytes: message }, bank)
  }

  function onSlotUpdate(update: WireReader): void {
    let slot = 0
    let status: number = SlotStatus.SLOT_PROCESSED
    let bank: BankOfNode | undefined
    while (update.next()) {
      if (update.field === SLOT_FIELD) slot = update.value
      if (update.field === STATUS_FIELD) status = update.value
      if (update.field === BANK_FIELD.slot) bank = { connection, id: update.wideValue }
    }
    if (status === SlotStatus.SLOT_FINALIZED) listener.onSlot(slot, 'finalized', bank)
    else if (status === SlotStatus.SLOT_DEAD) listener.onSlot(slot, 'dead', bank)
    else if (status === SlotStatus.SLOT_CONFIRMED) listener.onSlot(slot, 'seen', bank)
  }

  function lost(reason: string): void {
    stream = undefined
    if (isClosed) return
    const delayMs = backoff.nextMs()
    log.warn({ reason, delayMs: Math.round(delayMs) }, 'block stream lost')
    listener.onLost(reason)
    timer?.cancel()
    timer = clock.setTimer(delayMs, () => void connect())
  }

  const watch = clock.setRepeating(SILENCE_MS / 3, () => {
    if (!isPaused && stream !== undefined && clock.monotonicMs() - lastMs > SILENCE_MS) stream.cancel()
  })
  void connect()

  return {
    pause() {
      isPaused = true
      stream?.pause()
    },
    resume() {
      isPaused = false
      lastMs = clock.monotonicMs()
      stream?.resume()
    },
    [Symbol.dispose]() {
      isClosed = true
      watch.cancel()
      timer?.cancel()
      stream?.cancel()
    },
  }
}

const PING = encodeMessage(SubscribeRequestSchema, { ping: { id: 1 } })

function subscribeRequest({ includeAccounts }: { readonly includeAccounts: boolean }): Uint8Array {
  return encodeMessage(SubscribeRequestSchema, {
    commitment: CommitmentLevel.CONFIRMED,
    blocks: { blocks: { includeTransactions: true, includeAccounts, includeEntries: false } },
    slots: { slots: { interslotUpdates: true } },
  })
}
