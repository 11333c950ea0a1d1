import { GET_BLOCK_CONFIG } from '../../solana/json/block.ts'
import { readCompleteResponse } from '../../upstreams/complete-response.ts'
import { errorCodeOf } from '../../upstreams/extract-slot.ts'
import { upstreamRequest } from '../../upstreams/http-call.ts'
import type { Upstream } from '../../upstreams/upstream.ts'
import type { RawBlock } from './raw-block.ts'
import type { SlotRange } from './slot-ranges.ts'

export type Commitment = 'confirmed' | 'finalized'

export type FetchedBlock =
  | { readonly kind: 'block'; readonly raw: RawBlock }
  /** No node has a block there: the slot was skipped, or the block is missing on every node. The parent links show which. */
  | { readonly kind: 'none' }
  /** A transient failure: a node that may have it is behind, busy or unreachable. */
  | { readonly kind: 'later'; readonly reason: string }
  /** Every node has pruned it. */
  | { readonly kind: 'pruned' }

export type BlockFetch = {
  /** The first slots of the range that have a block, by one node, ascending. Undefined when no node responds. */
  slotsIn(range: SlotRange): Promise<readonly number[] | undefined>
  /** The same by all nodes, which may have kept different blocks. Undefined while one of them does not respond. */
  slotsOnAnyNode(range: SlotRange): Promise<readonly number[] | undefined>
  /** The first block that any node has. Undefined while one of them does not respond. */
  firstOnAnyNode(): Promise<number | undefined>
  /** Asks any node, then each of them if that one does not have the block. */
  fetch(slot: number): Promise<FetchedBlock>
}

type Calls = Pick<Upstream, 'forwardAsync'>

/** Most slots of one getBlocks call, by the rule of Agave. */
const GET_BLOCKS_SLOTS_MAX = 500_000
/** The largest blocks known are some 20 MB as JSON. */
const BLOCK_BYTES_MAX = 128 * 1024 * 1024
const SLOTS_BYTES_MAX = 16 * 1024 * 1024

/** Error codes of a node: slot skipped or missing (-32007, -32009), pruned (-32001). */
const NO_BLOCK = new Set([-32007, -32009])
const PRUNED = -32001
/** A provider of nodes sends -32007 for its rate limit, with another text. */
const NO_BLOCK_TEXT = /skipped|missing/i

export function createBlockFetch(
  upstream: Pick<Upstream, 'forwardAsync' | 'each'>,
  commitment: Commitment,
): BlockFetch {
  async function slotsOf(node: Calls, { from, to }: SlotRange): Promise<readonly number[] | undefined> {
    for (let first = from; first <= to; ) {
      const last = Math.min(to, first + GET_BLOCKS_SLOTS_MAX - 1)
      const response = await call(node, 'getBlocks', [first, last, { commitment }], SLOTS_BYTES_MAX)
      if (typeof response === 'string' || errorCodeOf(response) !== undefined) return undefined
      const { result } = parse(response)
      if (!Array.isArray(result) || !result.every(Number.isSafeInteger)) return undefined
      if (result.length > 0 || last === to) return result as number[]
      // A node without the first blocks of a long range has later ones.
      first = Math.max(last + 1, (await firstOf(node)) ?? 0)
    }
    return []
  }

  async function firstOf(node: Calls): Promise<number | undefined> {
    const response = await call(node, 'getFirstAvailableBlock', [], SLOTS_BYTES_MAX)
    const result = typeof response === 'string' ? undefined : parse(response).result
    return Number.isSafeInteger(result) ? (result as number) : undefined
  }

  async function fetchFrom(node: Calls, slot: number): Promise<FetchedBlock> {
    const response = await call(node, 'getBlock', [slot, { ...GET_BLOCK_CONFIG, commitment }], BLOCK_BYTES_MAX)
    if (typeof response === 'string') return { kind: 'later', reason: response }
    const code = errorCodeOf(response)
    if (code === undefined) {
      const isNull = response.length < 200 && parse(response).result === null
      return isNull ? { kind: 'none' } : { kind: 'block', raw: { slot, source: 'backfill', bytes: response } }
    }
    if (NO_BLOCK.has(code) && NO_BLOCK_TEXT.test(response.toString('utf8'))) return { kind: 'none' }
    return code === PRUNED ? { kind: 'pruned' } : { kind: 'later', reason: `error ${code}` }
  }

  async function fetchFromEach(slot: number): Promise<FetchedBlock> {
    const nodes = upstream.each()
    let found: FetchedBlock = { kind: 'pruned' }
    let later: FetchedBlock | undefined = nodes.length === 0 ? { kind: 'later', reason: 'no node' } : undefined
    for (const node of nodes) {
      const fetched = await fetchFrom(node, slot)
      if (fetched.kind === 'block') return fetched
      if (fetched.kind === 'later') later ??= { kind: 'later', reason: `node ${node.name}: ${fetched.reason}` }
      // A block below the first one of the node was pruned, whichever error it sends.
      if (fetched.kind === 'none' && ((await firstOf(node)) ?? 0) <= slot) found = fetched
    }
    return later ?? found
  }

  return {
    slotsIn: (range) => slotsOf(upstream, range),

    async slotsOnAnyNode(range) {
      const slots = new Set<number>()
      for (const node of upstream.each()) {
        const listed = await slotsOf(node, range)
        if (listed === undefined) return undefined
        for (const slot of listed) slots.add(slot)
      }
      return [...slots].toSorted((a, b) => a - b)
    },

    async firstOnAnyNode() {
      const firsts = await Promise.all(upstream.each().map(firstOf))
      return firsts.length === 0 || firsts.includes(undefined) ? undefined : Math.min(...(firsts as number[]))
    },

    async fetch(slot) {
      const fetched = await fetchFrom(upstream, slot)
      return fetched.kind === 'none' || fetched.kind === 'pruned' ? fetchFromEach(slot) : fetched
    },
  }
}

async function call(
  node: Calls,
  method: string,
  params: readonly unknown[],
  bytesMax: number,
): Promise<Buffer | string> {
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
  const outcome = await node.forwardAsync(upstreamRequest(method, body))
  if (outcome.kind !== 'responded') return outcome.kind
  return readCompleteResponse(outcome, { bytesMax })
}

function parse(response: Buffer): { result?: unknown } {
  try {
    return JSON.parse(response.toString('utf8')) as { result?: unknown }
  } catch {
    return {}
  }
}
