import { GET_BLOCK_CONFIG } from '../../solana/json/block.ts'
import { errorCodeOf } from '../../upstreams/extract-slot.ts'
import { callOf } from '../../upstreams/http-call.ts'
import type { Upstream } from '../../upstreams/service.ts'
import { readWholeResponse } from '../../upstreams/whole-response.ts'
import type { RawBlock } from './raw-block.ts'
import type { SlotRange } from './slot-ranges.ts'

export type Commitment = 'confirmed' | 'finalized'

export type FetchedBlock =
  | { readonly kind: 'block'; readonly raw: RawBlock }
  /** The node knows of no block there: skipped, or missing on that node. The parent links decide which. */
  | { readonly kind: 'none' }
  /** Not now: the node is behind, busy or away. */
  | { readonly kind: 'later'; readonly message: string }
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
    if (outcome.kind !== 'responded') return outcome.kind
    return readWholeResponse(outcome, { bytesMax })
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
      if (typeof response === 'string') return { kind: 'later', message: response }
      const code = errorCodeOf(response)
      if (code === undefined) {
        const isNull = response.length < 200 && parse(response).result === null
        return isNull ? { kind: 'none' } : { kind: 'block', raw: { slot, source: 'backfill', bytes: response } }
      }
      if (NO_BLOCK.has(code)) return { kind: 'none' }
      return code === PRUNED ? { kind: 'pruned' } : { kind: 'later', message: `error ${code}` }
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
