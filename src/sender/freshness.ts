import type { Clock } from '../core/clock.ts'
import { encodeBase58 } from '../solana/base58.ts'
import type { AskNode } from './ask-node.ts'

/** Whether a transaction on this blockhash can still land. `unknown` when nobody can say in time, and then it is let through. */
export type Freshness = {
  check(blockhash: Uint8Array): Promise<'fresh' | 'expired' | 'unknown'>
}

type Verdict = { readonly at: number; readonly says: 'fresh' | 'expired' | 'unknown' }

/** A good blockhash lives for 150 blocks, at the shortest planned slot time 30 s. */
const FRESH_MS = 3000
/** A node that is a little behind does not know the newest blockhash yet: a refusal is not remembered for long. */
const EXPIRED_MS = 400
const UNKNOWN_MS = 1000
const ASK_MS_MAX = 400
const KNOWN_MAX = 4096

/** Asks a node once for each blockhash and remembers the answer for a moment; most transactions share one of a few. */
export function createFreshness({ ask, clock }: { readonly ask: AskNode; readonly clock: Clock }): Freshness {
  const known = new Map<string, Verdict>()
  const asking = new Map<string, Promise<Verdict['says']>>()

  function recall(key: string): Verdict['says'] | undefined {
    const verdict = known.get(key)
    if (verdict === undefined) return undefined
    const livesMs = verdict.says === 'fresh' ? FRESH_MS : verdict.says === 'expired' ? EXPIRED_MS : UNKNOWN_MS
    return clock.monotonicMs() - verdict.at < livesMs ? verdict.says : undefined
  }

  async function learn(key: string): Promise<Verdict['says']> {
    const answer = await ask('isBlockhashValid', [key, { commitment: 'processed' }], ASK_MS_MAX)
    const value = (answer as { value?: unknown } | undefined)?.value
    const says = typeof value === 'boolean' ? (value ? 'fresh' : 'expired') : 'unknown'
    known.delete(key)
    known.set(key, { at: clock.monotonicMs(), says })
    for (const oldest of known.keys()) {
      if (known.size <= KNOWN_MAX) break
      known.delete(oldest)
    }
    return says
  }

  return {
    async check(blockhash) {
      const key = encodeBase58(blockhash)
      const remembered = recall(key)
      if (remembered !== undefined) return remembered
      if (asking.size >= KNOWN_MAX) return 'unknown'
      const running = asking.get(key) ?? learn(key).finally(() => asking.delete(key))
      asking.set(key, running)
      return running
    },
  }
}
