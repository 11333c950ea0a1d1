import type { Clock, Timer } from '../../core/clock.ts'
import type { Upstream } from '../../upstreams/service.ts'
import type { AskNode } from '../dispatch/node-call.ts'
import type { Landed, Receipt } from './receipt.ts'
import type { Receipts } from './receipts.ts'

export type FollowDeps = {
  readonly receipts: Receipts
  readonly ask: AskNode
  readonly ws: Upstream['ws']
  readonly clock: Clock
  /** Called before a landed transaction is taken back with its block. */
  onUnlanded(receipt: Receipt): void
}

/** Nodes take so many signatures in one question. */
const BATCH = 256
/** Questions under way at once. */
const PARALLEL = 4
const ASK_MS = 3000
/** A look at the chain is taken with each slot that is told, but not more often than this. */
const LOOK_MS_MIN = 150
/** And without slots, when the connection that tells them is lost. */
const LOOK_MS_MAX = 1000
const RESUBSCRIBE_MS = 1000
/** A blockhash lives for a while after a transaction was accepted: the question is not asked before. */
const EXPIRY_FIRST_MS = 5000
const EXPIRY_EVERY_MS = 2000
const BLOCKHASHES_MAX = 256
/** A block that is in the chain of a node is seen by it again within so many slots. */
const FORK_SLOTS = 32

/** Watches the chain for what was sent: landed, expired, or taken back with its block. */
export function startFollow({ receipts, ask, ws, clock, onUnlanded }: FollowDeps): Disposable {
  let isClosed = false
  let isLooking = false
  let isDue = false
  let lookedAtMs = Number.NEGATIVE_INFINITY
  let expiryAtMs = Number.NEGATIVE_INFINITY
  let subscription: ReturnType<typeof ws.subscribe>
  /** Blockhashes too old by now, with the height at which that was learnt. */
  let expired = new Map<string, number>()

  function subscribe(): void {
    subscription ??= ws.subscribe(
      { method: 'slotSubscribe', unsubscribe: 'slotUnsubscribe', params: '[]' },
      {
        onReady() {},
        onRefused: () => {
          subscription = undefined
        },
        onNotification: look,
        onLost: () => {
          subscription = undefined
        },
      },
    )
  }

  function look(): void {
    if (isClosed || receipts.watched.size === 0) return
    if (isLooking || clock.monotonicMs() - lookedAtMs < LOOK_MS_MIN) {
      isDue = true
      return
    }
    isLooking = true
    isDue = false
    lookedAtMs = clock.monotonicMs()
    void lookOnce().finally(() => {
      isLooking = false
    })
  }

  async function lookOnce(): Promise<void> {
    // Learnt before the question: a transaction that is in no block after its blockhash was too old never will be.
    const tooOld = expired
    const batches: Receipt[][] = []
    for (const receipt of receipts.watched) {
      const last = batches.at(-1)
      if (last === undefined || last.length >= BATCH) batches.push([receipt])
      else last.push(receipt)
    }
    const work = batches.values()
    const worker = async () => {
      for (const batch of work) await askStatuses(batch, tooOld)
    }
    await Promise.all(Array.from({ length: PARALLEL }, worker))
    if (clock.monotonicMs() - expiryAtMs >= EXPIRY_EVERY_MS) {
      expiryAtMs = clock.monotonicMs()
      expired = await askExpired()
    }
  }

  async function askStatuses(batch: readonly Receipt[], tooOld: ReadonlyMap<string, number>): Promise<void> {
    const response = await ask('getSignatureStatuses', [batch.map(({ signature }) => signature)], ASK_MS)
    const { context, value } = (response ?? {}) as { context?: { slot?: unknown }; value?: unknown }
    if (!Array.isArray(value) || value.length !== batch.length || typeof context?.slot !== 'number') return
    for (const [at, receipt] of batch.entries()) {
      if (!receipts.watched.has(receipt)) continue
      const landed = readStatus(value[at])
      if (landed !== undefined) receipts.land(receipt, landed)
      else if (receipt.landed !== undefined) {
        if (context.slot <= receipt.landed.slot + FORK_SLOTS) continue
        onUnlanded(receipt)
        receipts.unland(receipt)
      } else if (receipt.state !== 'unknown') {
        const height = tooOld.get(receipt.blockhash ?? '')
        if (height !== undefined) receipts.finish(receipt, 'expired', height)
      }
    }
  }

  async function askExpired(): Promise<Map<string, number>> {
    const nowMs = clock.monotonicMs()
    const blockhashes = new Set<string>()
    for (const { blockhash, acceptedAtMs, landed, state } of receipts.watched) {
      if (blockhash === undefined || landed !== undefined || state === 'unknown') continue
      if (nowMs - acceptedAtMs < EXPIRY_FIRST_MS) continue
      if (blockhashes.size < BLOCKHASHES_MAX) blockhashes.add(blockhash)
    }
    const found = new Map<string, number>()
    for (const blockhash of blockhashes) {
      const response = await ask('isBlockhashValid', [blockhash, { commitment: 'confirmed' }], ASK_MS)
      if ((response as { value?: unknown } | undefined)?.value !== false) continue
      const height = await ask('getBlockHeight', [{ commitment: 'confirmed' }], ASK_MS)
      if (typeof height === 'number') found.set(blockhash, height)
    }
    return found
  }

  const timers: Timer[] = [
    clock.setRepeating(RESUBSCRIBE_MS, subscribe),
    clock.setRepeating(LOOK_MS_MIN, () => {
      if (isDue || clock.monotonicMs() - lookedAtMs >= LOOK_MS_MAX) look()
    }),
  ]
  for (const timer of timers) timer.unref?.()
  subscribe()

  return {
    [Symbol.dispose]() {
      isClosed = true
      for (const timer of timers) timer.cancel()
      subscription?.close()
    },
  }
}

function readStatus(status: unknown): Omit<Landed, 'atMs'> | undefined {
  const { slot, err, confirmationStatus } = (status ?? {}) as {
    slot?: unknown
    err?: unknown
    confirmationStatus?: unknown
  }
  if (typeof slot !== 'number') return undefined
  const isKnown = confirmationStatus === 'confirmed' || confirmationStatus === 'finalized'
  return { slot, error: err ?? null, confirmation: isKnown ? confirmationStatus : 'processed' }
}
