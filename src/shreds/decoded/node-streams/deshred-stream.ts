import { SlotStatus, SubscribeDeshredRequestSchema } from '../../../solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../../solana/geyser/protobuf.ts'
import { WIRE_BYTES, WireReader } from '../../../solana/geyser/wire-reader.ts'
import type { OutputWriter } from '../output-ring.ts'
import { type FollowedStream, type FollowedStreamDeps, followStream } from './followed-stream.ts'
import { encodeRecord, type UpstreamRecord } from './records.ts'
import { readUpstreamTransaction } from './transaction.ts'

export type DeshredStreamOptions = {
  /** The node. */
  readonly name: string
  /** Its number among the nodes that are merged. */
  readonly source: number
}

export type DeshredStreamDeps = FollowedStreamDeps & {
  readonly output: OutputWriter
  /** Wakes the engine's thread. */
  wake(): void
  onInvalid(): void
}

/** One transaction with its lookup tables, far below this. */
const MESSAGE_BYTES_MAX = 64 * 1024
/** Field numbers of SubscribeUpdateDeshred and SubscribeUpdateSlot. */
const UPDATE = { transaction: 2, ping: 3, slot: 6 } as const
const SLOT = { slot: 1, status: 3 } as const

/** Passes all transactions of a node's own SubscribeDeshred on to the engine's thread. */
export function followDeshred({ name, source }: DeshredStreamOptions, deps: DeshredStreamDeps): FollowedStream {
  const { clock, output } = deps
  /** Unlike those of an earlier thread. */
  let stream = Math.floor(clock.nowMs()) % 2 ** 32

  function write(record: UpstreamRecord): void {
    output.write(encodeRecord(record))
    deps.wake()
  }

  function onMessage(message: Uint8Array): void {
    const update = new WireReader(message)
    while (update.next()) {
      if (update.wireType !== WIRE_BYTES) continue
      if (update.field === UPDATE.transaction) onTransaction(message.subarray(update.from, update.to))
      else if (update.field === UPDATE.slot) onSlot(update.inside())
      else if (update.field === UPDATE.ping) followed.replyToPing()
    }
    if (update.isBroken) onInvalid()
  }

  /** It may have been a transaction: the node has not delivered all of its slot. */
  function onInvalid(): void {
    deps.onInvalid()
    write({ kind: 'incomplete', source, stream, slot: 0 })
  }

  function onTransaction(update: Uint8Array): void {
    const transaction = readUpstreamTransaction(update)
    if (transaction === undefined) return onInvalid()
    const { slot, startIndex, endIndex, parsed, hasUnknownTable } = transaction
    const signature = parsed.signatures[0] as Uint8Array
    const arrivalNanos = clock.monotonicMs() * 1e6
    const place = { slot, startIndex, endIndex, arrivalNanos }
    write({ kind: 'transaction', source, stream, ...place, signature, hasUnknownTable, update })
  }

  function onSlot(update: WireReader): void {
    let slot = 0
    let status: number = SlotStatus.SLOT_PROCESSED
    while (update.next()) {
      if (update.field === SLOT.slot) slot = update.value
      if (update.field === SLOT.status) status = update.value
    }
    if (status === SlotStatus.SLOT_COMPLETED) write({ kind: 'completed', source, stream, slot })
    else if (status === SlotStatus.SLOT_DEAD) write({ kind: 'incomplete', source, stream, slot })
  }

  const followed = followStream(
    {
      path: '/geyser.Geyser/SubscribeDeshred',
      name: `decoded of ${name}`,
      messageBytesMax: MESSAGE_BYTES_MAX,
      pingReply: PING,
    },
    deps,
    {
      first: () => ALL,
      onMessage,
      onOpen() {
        stream = (stream + 1) % 2 ** 32
        write({ kind: 'opened', source, stream })
      },
      onLost: (wasOpen) => (wasOpen ? write({ kind: 'ended', source, stream }) : undefined),
    },
  )
  return followed
}

const ALL = encodeMessage(SubscribeDeshredRequestSchema, {
  deshredTransactions: { all: {} },
  slots: { slots: { interslotUpdates: true } },
})
const PING = encodeMessage(SubscribeDeshredRequestSchema, { ping: { id: 1 } })
