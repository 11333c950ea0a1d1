import type { Clock, Timer } from '../../core/clock.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { decodeBase58 } from '../../solana/crypto/base58.ts'
import type { SigningKey } from '../../solana/crypto/ed25519.ts'
import { encodeBlockMarker } from '../../solana/shred/block-marker.ts'
import { encodeEntries } from '../../solana/shred/entry.ts'
import { makeShreds } from '../../solana/shred/make.ts'
import { shredVersionOf } from '../../solana/shred/version.ts'
import type { Block, Chain } from '../chain/model.ts'

export type ShredSourceDeps = {
  readonly chain: Chain
  readonly leader: SigningKey
  readonly clock: Clock
  readonly log: Logger
  /** Sends one packet, without any delivery guarantee. */
  send(packet: Uint8Array): void
}

export type ShredSource = Disposable & {
  readonly shredVersion: number
  shredsSent(): number
}

/** Delay between two FEC sets: a burst of many sets would overrun a receiver's socket buffer, which holds about 200 KiB by default. */
const SET_SPACING_MS = 2
/** FEC sets waiting to be sent; above this the oldest are dropped. */
const SETS_WAITING_MAX = 1024

/** Sends every frozen block as the shreds its leader would broadcast, with the change of the parent if the leader began on another one. */
export function startShredSource(deps: ShredSourceDeps): ShredSource {
  const { chain, leader, clock, log } = deps
  const version = shredVersionOf(decodeBase58(chain.genesisHash))
  const waiting: (readonly Uint8Array[])[] = []
  let chainedRoot: Uint8Array = new Uint8Array(32)
  let timer: Timer | undefined
  let sent = 0

  /** A candidate bank of the slot that ends, on another parent than the surviving bank. */
  let begun: Block | undefined

  let frozenSlot = -1

  function consider(candidate: Block): void {
    const { slot, parentSlot } = candidate
    if (slot > frozenSlot && parentSlot < slot - 1) begun = candidate
  }

  function shred(block: Block): void {
    const { slot } = block
    const { parentSlot } = begun ?? block
    const batches = [...(begun ? replacedBatches(begun, block) : []), ...batchesOf(block)]
    begun = undefined
    frozenSlot = slot
    const shredded = makeShreds({ slot, parentSlot, version, batches, chainedRoot, leader })
    chainedRoot = shredded.lastRoot
    for (const { data, code } of shredded.sets) waiting.push([...data, ...code])
    const tooMany = waiting.length - SETS_WAITING_MAX
    if (tooMany > 0) {
      waiting.splice(0, tooMany)
      log.warn({ sets: tooMany }, 'shreds dropped: blocks are produced faster than they are sent')
    }
    if (!timer) sendNext()
  }

  function sendNext(): void {
    timer = undefined
    const set = waiting.shift()
    if (!set) return
    for (const packet of set) deps.send(packet)
    sent += set.length
    if (waiting.length > 0) timer = clock.setTimer(SET_SPACING_MS, sendNext)
  }

  const unsubscribe = chain.subscribe((event) => {
    if (event.kind === 'candidate') consider(event.block)
    if (event.kind === 'frozen') shred(event.block)
  })
  return {
    shredVersion: version,
    shredsSent: () => sent,
    [Symbol.dispose]() {
      unsubscribe()
      timer?.cancel()
    },
  }
}

/** One batch with the entries, which an empty block of Alpenglow does not have, and under Alpenglow one with the footer. */
export function batchesOf(block: Block): Uint8Array[] {
  return block.footer
    ? [...entryBatchesOf(block), encodeBlockMarker({ variant: 'block-footer', ...block.footer })]
    : entryBatchesOf(block)
}

/** What the leader sent before it changed the parent. */
function replacedBatches(begun: Block, { parentSlot, previousBlockhash }: Block): Uint8Array[] {
  const parentBlockId = decodeBase58(previousBlockhash)
  return [...entryBatchesOf(begun), encodeBlockMarker({ variant: 'update-parent', parentSlot, parentBlockId })]
}

/** The block's entries as one entry batch, or none. */
export function entryBatchesOf(block: Block): Uint8Array[] {
  if (block.entries.length === 0) return []
  const batch = encodeEntries(
    block.entries.map(({ numHashes, hash, firstTransaction, transactionCount }) => ({
      numHashes,
      hash,
      transactions: block.transactions
        .slice(firstTransaction, firstTransaction + transactionCount)
        .map(({ wire }) => wire),
    })),
  )
  return [batch]
}
