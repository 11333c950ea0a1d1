import type { Clock } from '../../core/clock.ts'
import type { GrpcStream } from '../../platform/grpc/stream.ts'
import type { UpstreamNode } from '../../upstreams/node.ts'
import type { Upstream } from '../../upstreams/service.ts'
import type { PolicyPass } from './policy.ts'

/** What a lost stream goes on with: a call to another node, and the request that makes it go on. */
export type NextNode = { readonly stream: GrpcStream; readonly upstream: UpstreamNode; readonly request: Uint8Array }

/**
 * Lets a Subscribe stream go on at another node when its own is lost.
 *
 * What is promised: every update of the slots from `from_slot` on, which is set back so far that nothing can be missing, is sent by the new node;
 * updates the client has had already may come again. Where the new node does not hold these slots any more the stream ends, and says so.
 */
export type Resume = {
  /** A request that was let through; the last one tells what the client wants now. */
  asked(message: Uint8Array, verdict: PolicyPass): void
  /** Bytes have come from the node. */
  heard(): void
  /** The stream is live again: updates of a slot have come. */
  settled(): void
  next(lost: UpstreamNode, lastSlot: number | undefined): Promise<NextNode | undefined>
}

export type ResumeDeps = {
  readonly upstream: () => Pick<Upstream, 'grpc' | 'bestSlot'>
  readonly path: string
  readonly metadata: Readonly<Record<string, string>>
  readonly clock: Clock
}

/** A slot is told of until it is final, 32 slots after it was the newest; a node may be a few behind the best. */
const SET_BACK_SLOTS = 40
/** Larger requests are not kept for the case of a loss. */
const REQUEST_BYTES_MAX = 256 * 1024
/** Looks for a node, each after twice the time of the one before; then the stream ends. */
const TRIES_MAX = 6
const FIRST_WAIT_MS = 50

/** Field 11, a varint (geyser.proto). */
const FROM_SLOT_TAG = 0x58

type Asked = { readonly message: Uint8Array; readonly fromSlot: number | undefined; readonly bestSlot: number }

export function createResume({ upstream, path, metadata, clock }: ResumeDeps): Resume {
  let last: Asked | undefined
  let heardSlot = upstream().bestSlot
  let tries = 0

  function fromSlot({ fromSlot: wanted, bestSlot }: Asked, lastSlot: number | undefined): number {
    // The node was still sending the past the client had asked for, slot after slot.
    if (wanted !== undefined && (lastSlot ?? 0) < bestSlot) return Math.max(wanted, lastSlot ?? 0)
    return Math.max(0, Math.max(heardSlot, lastSlot ?? 0) - SET_BACK_SLOTS)
  }

  return {
    asked(message, { isPing, fromSlot: wanted }) {
      if (isPing) return
      const isKept = message.length <= REQUEST_BYTES_MAX
      last = isKept ? { message: Buffer.from(message), fromSlot: wanted, bestSlot: upstream().bestSlot } : undefined
    },
    heard() {
      heardSlot = upstream().bestSlot
    },
    settled() {
      tries = 0
    },
    async next(lost, lastSlot) {
      while (last !== undefined && tries < TRIES_MAX) {
        tries += 1
        if (tries > 1) await wait(clock, FIRST_WAIT_MS * 2 ** (tries - 1))
        const opened = await upstream().grpc.open(path, metadata, { except: tries === TRIES_MAX ? undefined : lost })
        if (opened.ok) return { ...opened, request: withFromSlot(last.message, fromSlot(last, lastSlot)) }
      }
      return undefined
    },
  }
}

/** The request with another beginning: of a field that comes twice the last one counts. */
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
