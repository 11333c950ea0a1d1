import type { Clock } from '../../core/clock.ts'
import type { GrpcStream } from '../../platform/grpc/stream.ts'
import { SubscribeRequestSchema } from '../../solana/gen/geyser_pb.ts'
import { decodeMessage } from '../../solana/geyser/protobuf.ts'
import type { UpstreamNode } from '../../upstreams/node.ts'
import type { Upstream } from '../../upstreams/started-pool.ts'
import type { PolicyPass } from './policy.ts'
import { SeenBanks } from './seen-banks.ts'

/** Another node for a lost stream: the new call, and its first request. */
export type NextNode = {
  readonly stream: GrpcStream
  readonly upstream: UpstreamNode
  readonly request: Uint8Array
  /** The updates of slots from this one on are sent again. */
  readonly fromSlot: number
  /** Banks of the lost node that are declared dead, and the slot updates for the client that do so. */
  readonly ended: { readonly banks: number; readonly frames: Uint8Array }
}

/**
 * Continues a Subscribe stream at another node when its own is lost.
 *
 * The new node sends every update from `from_slot` on, which is set back far enough that none is missing; updates the client has got
 * already may be repeated. Where the new node no longer has these slots, the stream ends with an error.
 *
 * Ids of banks are local to a node. Before the first update of the new node, a client with a `slots` filter gets SLOT_DEAD for every bank of the lost
 * node that is not final: it discards what it has of them, and never joins updates of two banks.
 */
export type Resume = {
  /** The banks that the client has seen. */
  readonly banks: SeenBanks
  /** Keeps the last accepted request, for the next node. */
  onRequest(message: Uint8Array, verdict: PolicyPass): void
  /** Bytes have arrived from the node. */
  onData(): void
  /** Updates of a slot have arrived: the stream is live. */
  onLive(): void
  next(lost: UpstreamNode, lastSlot: number | undefined): Promise<NextNode | undefined>
}

export type ResumeDeps = {
  readonly upstream: () => Pick<Upstream, 'grpc' | 'bestSlot'>
  readonly path: string
  readonly metadata: Readonly<Record<string, string>>
  readonly clock: Clock
}

/** A slot has updates until it is finalized, 32 slots later; a node may be a few slots behind the best. */
const SET_BACK_SLOTS = 40
/** Larger requests are not kept, and their stream cannot be resumed. */
const REQUEST_BYTES_MAX = 256 * 1024
/** Attempts to find a node, with doubling delays; then the stream ends. */
const ATTEMPTS_MAX = 6
const FIRST_WAIT_MS = 50

/** Field 11, a varint (geyser.proto). */
const FROM_SLOT_TAG = 0x58

type KeptRequest = { readonly message: Uint8Array; readonly fromSlot: number | undefined; readonly bestSlot: number }

export function createResume({ upstream, path, metadata, clock }: ResumeDeps): Resume {
  let last: KeptRequest | undefined
  let lastDataSlot = upstream().bestSlot
  let attempts = 0
  const banks = new SeenBanks()

  function fromSlot({ fromSlot: requested, bestSlot }: KeptRequest, lastSlot: number | undefined): number {
    // The node was still replaying past slots, in order.
    if (requested !== undefined && (lastSlot ?? 0) < bestSlot) return Math.max(requested, lastSlot ?? 0)
    return Math.max(0, Math.max(lastDataSlot, lastSlot ?? 0) - SET_BACK_SLOTS)
  }

  return {
    banks,
    onRequest(message, { isPing, fromSlot: requested }) {
      if (isPing) return
      const isKept = message.length <= REQUEST_BYTES_MAX
      last = isKept ? { message: Buffer.from(message), fromSlot: requested, bestSlot: upstream().bestSlot } : undefined
    },
    onData() {
      lastDataSlot = upstream().bestSlot
    },
    onLive() {
      attempts = 0
    },
    async next(lost, lastSlot) {
      while (last !== undefined && attempts < ATTEMPTS_MAX) {
        attempts += 1
        if (attempts > 1) await wait(clock, FIRST_WAIT_MS * 2 ** (attempts - 1))
        const opened = await upstream().grpc.open(path, metadata, {
          isStream: true,
          except: attempts === ATTEMPTS_MAX ? undefined : lost,
        })
        if (!opened.ok) continue
        const from = fromSlot(last, lastSlot)
        const ended = banks.endAll(slotFiltersOf(last.message), from)
        return { ...opened, request: withFromSlot(last.message, from), fromSlot: from, ended }
      }
      return undefined
    },
  }
}

/** The names of the filters whose updates are slot updates. */
function slotFiltersOf(request: Uint8Array): readonly string[] {
  return Object.keys(decodeMessage(SubscribeRequestSchema, request)?.slots ?? {})
}

/** The request with another `from_slot`, appended: of a repeated field the last value counts. */
function withFromSlot(request: Uint8Array, slot: number): Uint8Array {
  const field = [FROM_SLOT_TAG]
  let rest = slot
  while (rest >= 0x80) {
    field.push((rest % 0x80) | 0x80)
    rest = Math.floor(rest / 0x80)
  }
  return Buffer.concat([request, Buffer.from([...field, rest])])
}

function wait(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimer(ms, resolve))
}
