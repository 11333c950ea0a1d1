import { GET_BLOCK_CONFIG } from '../../solana/json/block.ts'
import { errorCodeOf } from '../../upstreams/extract-slot.ts'
import { callOf } from '../../upstreams/http-call.ts'
import type { Upstream } from '../../upstreams/service.ts'
import { readWholeAnswer } from '../../upstreams/whole-response.ts'
import type { RawBlock } from './raw-block.ts'
import type { SlotRange } from './slot-ranges.ts'

export type Commitment = 'confirmed' | 'finalized'

export type FetchedBlock =
  | { readonly kind: 'block'; readonly raw: RawBlock }
  /** The node knows of no block there: skipped, or missing on that node. The parent links decide which. */
  | { readonly kind: 'none' }
  /** Not now: the node is behind, busy or away. */
  | { readonly kind: 'later'; readonly says: string }
  /** The node has dropped it; another may still have it. */
  | { readonly kind: 'pruned' }

export type BlockFetch = {
  /** Slots in the range that have a block, ascending. Undefined when the node does not answer now. */
  slotsIn(range: SlotRange): Promise<readonly number[] | undefined>
  fetch(slot: number): Promise<FetchedBlock>
}

/** What getBlocks answers at most in one call, by the rule of Agave. */
const GET_BLOCKS_SLOTS_MAX = 500_000
/** The largest blocks seen are some 20 MB as JSON. */
const BLOCK_BYTES_MAX = 128 * 1024 * 1024
const SLOTS_BYTES_MAX = 16 * 1024 * 1024

/** Error codes of a node (bundle.md): slot skipped or missing (-32007, -32009), pruned (-32001). */
const NO_BLOCK = new Set([-32007, -32009])
const PRUNED = -32001

export function createBlockFetch(upstream: Pick<Upstream, 'ask'>, commitment: Commitment): BlockFetch {
  async function call(method: string, params: readonly unknown[], bytesMax: number): Promise<Buffer | string> {
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
    const outcome = await upstream.ask(callOf(method, body))
    if (outcome.kind !== 'answered') return outcome.kind
    return readWholeAnswer(outcome, { bytesMax })
  }

  return {
    async slotsIn({ from, to }) {
      const last = Math.min(to, from + GET_BLOCKS_SLOTS_MAX)
      const answer = await call('getBlocks', [from, last, { commitment }], SLOTS_BYTES_MAX)
      if (typeof answer === 'string' || errorCodeOf(answer) !== undefined) return undefined
      const { result } = parse(answer)
      return Array.isArray(result) && result.every(Number.isSafeInteger) ? (result as number[]) : undefined
    },

    async fetch(slot) {
      const answer = await call('getBlock', [slot, { ...GET_BLOCK_CONFIG, commitment }], BLOCK_BYTES_MAX)
      if (typeof answer === 'string') return { kind: 'later', says: answer }
      const code = errorCodeOf(answer)
      if (code === undefined) {
        const isNull = answer.length < 200 && parse(answer).result === null
        return isNull ? { kind: 'none' } : { kind: 'block', raw: { slot, source: 'backfill', bytes: answer } }
      }
      if (NO_BLOCK.has(code)) return { kind: 'none' }
      return code === PRUNED ? { kind: 'pruned' } : { kind: 'later', says: `error ${code}` }
    },
  }
}

function parse(answer: Buffer): { result?: unknown } {
  try {
    return JSON.parse(answer.toString('utf8')) as { result?: unknown }
  } catch {
    return {}
  }
}
