import { GET_BLOCK_CONFIG } from '../../solana/json/block.ts'
import { readCompleteResponse } from '../../upstreams/complete-response.ts'
import { errorCodeOf } from '../../upstreams/extract-slot.ts'
import { upstreamRequest } from '../../upstreams/http-call.ts'
import type { Upstream } from '../../upstreams/started-pool.ts'
import type { RawBlock } from './raw-block.ts'
import type { SlotRange } from './slot-ranges.ts'

export type Commitment = 'confirmed' | 'finalized'

export type FetchedBlock =
  | { readonly kind: 'block'; readonly raw: RawBlock }
  /** The node has no block there: the slot was skipped, or the block is missing on that node. The parent links show which. */
  | { readonly kind: 'none' }
  /** A transient failure: the node is behind, busy or unreachable. */
  | { readonly kind: 'later'; readonly reason: string }
  /** The node has pruned it; another may still have it. */
  | { readonly kind: 'pruned' }

export type BlockFetch = {
  /** Slots in the range that have a block, ascending. Undefined when no node responds. */
  slotsIn(range: SlotRange): Promise<readonly number[] | undefined>
  fetch(slot: number): Promise<FetchedBlock>
}

/** Most slots of one getBlocks call, by the rule of Agave. */
const GET_BLOCKS_SLOTS_MAX = 500_000
/** The largest blocks known are some 20 MB as JSON. */
const BLOCK_BYTES_MAX = 128 * 1024 * 1024
const SLOTS_BYTES_MAX = 16 * 1024 * 1024

/** Error codes of a node (bundle.md): slot skipped or missing (-32007, -32009), pruned (-32001). */
const NO_BLOCK = new Set([-32007, -32009])
const PRUNED = -32001

export function createBlockFetch(upstream: Pick<Upstream, 'forwardAsync'>, commitment: Commitment): BlockFetch {
  async function call(method: string, params: readonly unknown[], bytesMax: number): Promise<Buffer | string> {
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
    const outcome = await upstream.forwardAsync(upstreamRequest(method, body))
    if (outcome.kind !== 'responded') return outcome.kind
    return readCompleteResponse(outcome, { bytesMax })
  }

  return {
    async slotsIn({ from, to }) {
      const last = Math.min(to, from + GET_BLOCKS_SLOTS_MAX)
      const response = await call('getBlocks', [from, last, { commitment }], SLOTS_BYTES_MAX)
      if (typeof response === 'string' || errorCodeOf(response) !== undefined) return undefined
      const { result } = parse(response)
      return Array.isArray(result) && result.every(Number.isSafeInteger) ? (result as number[]) : undefined
    },

    async fetch(slot) {
      const response = await call('getBlock', [slot, { ...GET_BLOCK_CONFIG, commitment }], BLOCK_BYTES_MAX)
      if (typeof response === 'string') return { kind: 'later', reason: response }
      const code = errorCodeOf(response)
      if (code === undefined) {
        const isNull = response.length < 200 && parse(response).result === null
        return isNull ? { kind: 'none' } : { kind: 'block', raw: { slot, source: 'backfill', bytes: response } }
      }
      if (NO_BLOCK.has(code)) return { kind: 'none' }
      return code === PRUNED ? { kind: 'pruned' } : { kind: 'later', reason: `error ${code}` }
    },
  }
}

function parse(response: Buffer): { result?: unknown } {
  try {
    return JSON.parse(response.toString('utf8')) as { result?: unknown }
  } catch {
    return {}
  }
}
