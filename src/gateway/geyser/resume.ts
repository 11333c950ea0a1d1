import type { Clock } from '../../core/clock.ts'
import type { GrpcStream } from '../../platform/grpc/stream.ts'
import { SubscribeRequestSchema } from '../../solana/gen/geyser_pb.ts'
import { decodeMessage } from '../../solana/geyser/protobuf.ts'
import type { UpstreamNode } from '../../upstreams/node.ts'
import type { Upstream } from '../../upstreams/upstream.ts'
import type { PolicyPass } from './policy.ts'
import { SeenBanks } from './seen-banks.ts'
import { type StreamPiece, StreamPosition } from './stream-position.ts'

/** Another node for a lost stream: the new call, and its first request. */
export type NextNode = {
  readonly stream: GrpcStream
  readonly node: UpstreamNode
  readonly request: Uint8Array
  /** The updates of slots from this one on are sent again. */
  readonly fromSlot: number
  /** Banks of the lost node that are declared dead, and the slot updates that do so: for the client, before the first bytes of the node. */
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
  /** Whether there is a request for the next node. */
  readonly canContinue: boolean
  /** Keeps the last accepted request, for the next node. */
  onRequest(message: Uint8Array, verdict: PolicyPass): void
  /** Bytes have arrived from the node. */
  onData(piece: StreamPiece): void
  /** Updates of a slot have arrived: the stream is live. */
  onLive(): void
  /** Another node; undefined where there is none. */
  next(): Promise<NextNode | undefined>
}

export type ResumeDeps = {
  /** The first node of the stream. */
  readonly node: UpstreamNode
  readonly upstream: () => Pick<Upstream, 'grpc' | 'bestSlot'>
  readonly path: string
  readonly metadata: Readonly<Record<string, string>>
  /** Whether the stream may be moved, asked when its node is drained. */
  readonly isMovable: () => boolean
  readonly clock: Clock
}

/** Larger requests are not kept, and their stream cannot be resumed. */
const REQUEST_BYTES_MAX = 256 * 1024
/** Attempts to find a node in one outage, with doubling delays; then the stream ends. */
const ATTEMPTS_MAX = 6
const FIRST_WAIT_MS = 50
/** A stream that stayed at its node for this time has survived the outage: nodes ping every ten seconds, and a silent one is given up. */
const SURVIVED_MS = 60_000

/** Field 11, a varint (geyser.proto). */
const FROM_SLOT_TAG = 0x58

export function createResume({ node: first, upstream, path, metadata, isMovable, clock }: ResumeDeps): Resume {
  let node = first
  let last: Uint8Array | undefined
  let hasRequest = false
  let attempts = 0
  let movedAtMs = clock.monotonicMs()
  const banks = new SeenBanks()
  const position = new StreamPosition(nodeSlot())

  /** Not the best slot: a node in rotation may be seconds behind it. */
  function nodeSlot(): number {
    return node.health.slot === 0 ? upstream().bestSlot : node.health.slot
  }

  return {
    banks,
    get canContinue() {
      return last !== undefined
    },
    onRequest(message, { isPing, fromSlot }) {
      if (isPing) return
      // A request without it changes the filters and not the position.
      if (!hasRequest || fromSlot !== undefined) position.open(fromSlot, nodeSlot())
      hasRequest = true
      last = message.length <= REQUEST_BYTES_MAX ? Buffer.from(message) : undefined
    },
    onData: (piece) => position.onPiece(piece, nodeSlot()),
    onLive() {
      attempts = 0
    },
    async next() {
      // A stream whose filters match nothing has no update that shows it to be live.
      if (clock.monotonicMs() - movedAtMs >= SURVIVED_MS) attempts = 0
      while (last !== undefined && attempts < ATTEMPTS_MAX) {
        attempts += 1
        if (attempts > 1) await wait(clock, FIRST_WAIT_MS * 2 ** (attempts - 1))
        const opened = await upstream().grpc.open(path, metadata, {
          isStream: true,
          isMovable,
          except: attempts === ATTEMPTS_MAX ? undefined : node,
        })
        if (!opened.ok) continue
        node = opened.node
        movedAtMs = clock.monotonicMs()
        const fromSlot = position.nextFromSlot
        position.open(fromSlot, nodeSlot())
        const ended = banks.endAll(slotFiltersOf(last), fromSlot)
        return { ...opened, request: withFromSlot(last, fromSlot), fromSlot, ended }
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
