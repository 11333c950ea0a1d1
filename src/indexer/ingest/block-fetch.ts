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
  /** This block cannot be decoded: the next fetch of its slot leaves out the node that sent it. */
  refuse(raw: RawBlock): void
}

/** By slot, the nodes that sent a block which cannot be decoded. */
export type RefusedBlocks = Map<number, Set<string>>

type Calls = Pick<Upstream, 'forwardAsync'>

/** Most slots of one getBlocks call, by the rule of Agave. */
const GET_BLOCKS_SLOTS_MAX = 500_000
/** The largest blocks known are some 20 MB as JSON. */
const BLOCK_BYTES_MAX = 128 * 1024 * 1024
const SLOTS_BYTES_MAX = 16 * 1024 * 1024

/** Slots of refused blocks that are remembered. */
const REFUSED_MAX = 1024

/** Error codes of a node: slot skipped or missing (-32007, -32009), pruned (-32001). */
const NO_BLOCK = new Set([-32007, -32009])
const PRUNED = -32001
/** A provider of nodes sends -32007 for its rate limit, with another text. */
const NO_BLOCK_TEXT = /skipped|missing/i

export function createBlockFetch(
  upstream: Pick<Upstream, 'forwardAsync' | 'each'>,
  commitment: Commitment,
  refused: RefusedBlocks = new Map(),
): BlockFetch {
  async function slotsOf(node: Calls, { from, to }: SlotRange): Promise<readonly number[] | undefined> {
    for (let first = from; first <= to; ) {
      const last = Math.min(to, first + GET_BLOCKS_SLOTS_MAX - 1)
      const { response } = await call(node, 'getBlocks', [first, last, { commitment }], SLOTS_BYTES_MAX)
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
    const { response } = await call(node, 'getFirstAvailableBlock', [], SLOTS_BYTES_MAX)
    const result = typeof response === 'string' ? undefined : parse(response).result
    return Number.isSafeInteger(result) ? (result as number) : undefined
  }

  async function fetchFrom(node: Calls, slot: number): Promise<FetchedBlock> {
    const config = { ...GET_BLOCK_CONFIG, commitment }
    const { response, nodeName } = await call(node, 'getBlock', [slot, config], BLOCK_BYTES_MAX)
    if (typeof response === 'string') return { kind: 'later', reason: response }
    const code = errorCodeOf(response)
    if (code === undefined) {
      const isNull = response.length < 200 && parse(response).result === null
      if (isNull) return { kind: 'none' }
      return { kind: 'block', raw: { slot, source: 'backfill', bytes: response, node: nodeName } }
    }
    if (NO_BLOCK.has(code) && NO_BLOCK_TEXT.test(response.toString('utf8'))) return { kind: 'none' }
    return code === PRUNED ? { kind: 'pruned' } : { kind: 'later', reason: `error ${code}` }
  }

  /** Once every other node was asked in vain, those whose block was refused are asked again. */
  async function fetchFromOthers(slot: number, refusedOf: ReadonlySet<string>): Promise<FetchedBlock> {
    const fetched = await fetchFromEach(
      slot,
      upstream.each().filter(({ name }) => !refusedOf.has(name)),
    )
    if (fetched.kind === 'block') return fetched
    refused.delete(slot)
    return {
      kind: 'later',
      reason: `what ${[...refusedOf].join(', ')} sent cannot be decoded, and no other node has it`,
    }
  }

  async function fetchFromEach(slot: number, nodes = upstream.each()): Promise<FetchedBlock> {
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
      const refusedOf = refused.get(slot)
      if (refusedOf !== undefined) return fetchFromOthers(slot, refusedOf)
      const fetched = await fetchFrom(upstream, slot)
      return fetched.kind === 'none' || fetched.kind === 'pruned' ? fetchFromEach(slot) : fetched
    },

    refuse({ slot, node }) {
      if (node === undefined) return
      if (refused.size >= REFUSED_MAX) refused.clear()
      refused.set(slot, (refused.get(slot) ?? new Set()).add(node))
    },
  }
}

async function call(
  node: Calls,
  method: string,
  params: readonly unknown[],
  bytesMax: number,
): Promise<{ readonly response: Buffer | string; readonly nodeName?: string }> {
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
  const outcome = await node.forwardAsync(upstreamRequest(method, body))
  if (outcome.kind !== 'responded') return { response: outcome.kind }
  return { response: await readCompleteResponse(outcome, { bytesMax }), nodeName: outcome.nodeName }
}

function parse(response: Buffer): { result?: unknown } {
  try {
    return JSON.parse(response.toString('utf8')) as { result?: unknown }
  } catch {
    return {}
  }
}
