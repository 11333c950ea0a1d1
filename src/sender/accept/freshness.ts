import type { Clock } from '../../core/clock.ts'
import type { AskNode } from '../dispatch/node-call.ts'

/** Whether a transaction on this blockhash can still land. `unknown` when nobody can say in time, and then it is let through. */
export type Freshness = Disposable & {
  /** Of a blockhash in base58. Told at once where it is known. */
  check(blockhash: string): Verdict['state'] | Promise<Verdict['state']>
}

type Verdict = { readonly at: number; readonly state: 'fresh' | 'expired' | 'unknown' }

const FRESH_MS = 10_000
/** A fresh one is asked for again from here on, while what is known still counts: nobody waits for that. */
const RENEW_MS = 3000
/** A node that is a little behind does not know the newest blockhash yet: a refusal is not remembered for long. */
const EXPIRED_MS = 400
const UNKNOWN_MS = 1000
const ASK_MS_MAX = 400
const KNOWN_MAX = 4096
/** Calls for blockhashes under way at once; beyond them a blockhash is unknown. */
const ASKING_MAX = 256
/** The newest blockhash is looked at this often, as long as transactions come. */
const LOOK_MS = 200
const LOOK_FOR_MS = 60_000
/** A look older than this says nothing about the height of now. */
const LOOK_GOOD_MS = 5000
/** Blocks for which a blockhash is good (agave: MAX_PROCESSING_AGE). */
const AGE_BLOCKS_MAX = 150

/**
 * Notes each blockhash while it is the newest, with the height it is good for, so that most transactions are judged from memory. For
 * one it has not seen it asks a node once, and remembers the answer for a moment.
 */
export function createFreshness({ ask, clock }: { readonly ask: AskNode; readonly clock: Clock }): Freshness {
  const known = new Map<string, Verdict>()
  const asking = new Map<string, Promise<Verdict['state']>>()
  /** Blockhashes that were the newest, with the last height at which they are good. */
  const seen = new Map<string, number>()
  let newest = { lastHeight: 0, at: Number.NEGATIVE_INFINITY }
  let wantedAtMs = Number.NEGATIVE_INFINITY
  let isLooking = false

  async function look(): Promise<void> {
    const nowMs = clock.monotonicMs()
    if (isLooking || nowMs - wantedAtMs > LOOK_FOR_MS) return
    isLooking = true
    const response = await ask('getLatestBlockhash', [{ commitment: 'processed' }], ASK_MS_MAX)
    isLooking = false
    const { blockhash, lastValidBlockHeight } = ((response as { value?: object } | undefined)?.value ?? {}) as {
      blockhash?: unknown
      lastValidBlockHeight?: unknown
    }
    if (typeof blockhash !== 'string' || typeof lastValidBlockHeight !== 'number') return
    newest = { lastHeight: lastValidBlockHeight, at: nowMs }
    remember(seen, blockhash, lastValidBlockHeight)
  }

  /** From what was seen; the height of now follows from the newest blockhash. */
  function validate(key: string): Verdict['state'] | undefined {
    const lastHeight = seen.get(key)
    const nowMs = clock.monotonicMs()
    if (lastHeight !== undefined && nowMs - newest.at < LOOK_GOOD_MS) {
      return newest.lastHeight - lastHeight < AGE_BLOCKS_MAX ? 'fresh' : undefined
    }
    const verdict = known.get(key)
    if (verdict === undefined) return undefined
    const livesMs = verdict.state === 'fresh' ? FRESH_MS : verdict.state === 'expired' ? EXPIRED_MS : UNKNOWN_MS
    return nowMs - verdict.at < livesMs ? verdict.state : undefined
  }

  async function learn(key: string): Promise<Verdict['state']> {
    const response = await ask('isBlockhashValid', [key, { commitment: 'processed' }], ASK_MS_MAX)
    const value = (response as { value?: unknown } | undefined)?.value
    const state = typeof value === 'boolean' ? (value ? 'fresh' : 'expired') : 'unknown'
    remember(known, key, { at: clock.monotonicMs(), state })
    return state
  }

  /** Undefined when too many are asked for already. */
  function askFor(key: string): Promise<Verdict['state']> | undefined {
    const running = asking.get(key)
    if (running !== undefined || asking.size >= ASKING_MAX) return running
    const asked = learn(key).finally(() => asking.delete(key))
    asking.set(key, asked)
    return asked
  }

  function isOld(key: string): boolean {
    return clock.monotonicMs() - (known.get(key)?.at ?? Number.NEGATIVE_INFINITY) >= RENEW_MS
  }

  const timer = clock.setRepeating(LOOK_MS, () => void look())
  timer.unref?.()

  return {
    check(key) {
      wantedAtMs = clock.monotonicMs()
      const validated = validate(key)
      if (validated === undefined) return askFor(key) ?? 'unknown'
      if (validated === 'fresh' && !seen.has(key) && isOld(key)) void askFor(key)
      return validated
    },
    [Symbol.dispose]: () => timer.cancel(),
  }
}

function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key)
  map.set(key, value)
  for (const oldest of map.keys()) {
    if (map.size <= KNOWN_MAX) return
    map.delete(oldest)
  }
}
