import type { TimeSlices } from '../../../platform/process/time-slices.ts'
import type { Block, Chain, Commitment } from '../../chain/model.ts'
import { blockAt, blockHeightAt, DEFAULT_COMMITMENT, openBank, type RpcMethods } from '../context.ts'
import { encodeBlock } from '../encode-transaction.ts'
import {
  blockCleanedUp,
  blockNotAvailable,
  invalidParams,
  minContextSlotNotReached,
  slotSkipped,
  unsupportedVersion,
} from '../errors.ts'
import { JsonText } from '../json.ts'
import { readArguments, u64, usize } from '../params.ts'
import * as shape from '../request-shapes.ts'
import { totalStake } from './stakes.ts'

const BLOCKS_RANGE_MAX = 500_000n
/** MAX_LOCKOUT_HISTORY, and one for the root. */
const COMMITMENT_DEPTHS = 32

export const blockMethods: RpcMethods = {
  getBlock({ chain }, params) {
    const [slot, config] = readArguments(params, [u64], [shape.blockConfig])
    const commitment = atLeastConfirmed(config?.commitment)
    const block = findBlock(chain, slot, commitment)
    const encoded = encodeBlock(block, {
      encoding: config?.encoding ?? 'json',
      details: config?.transactionDetails ?? 'full',
      showRewards: config?.rewards ?? true,
      maxSupportedVersion: config?.maxSupportedTransactionVersion,
    })
    if (!encoded.ok) throw unsupportedVersion(encoded.unsupportedVersion)
    return encoded.value
  },

  getBlocks({ chain, createSlices }, params) {
    const [start, wrapper, last] = readArguments(params, [u64], [shape.blocksWrapper, shape.contextConfig])
    const config = last ?? (typeof wrapper === 'object' ? wrapper : {})
    const top = BigInt(rootedSlot(chain, config))
    const requestedEnd = typeof wrapper === 'bigint' ? wrapper : start + BLOCKS_RANGE_MAX
    const end = requestedEnd < top ? requestedEnd : top
    if (end < start) return []
    if (end - start > BLOCKS_RANGE_MAX) throw invalidParams(`Slot range too large; max ${BLOCKS_RANGE_MAX}`)
    const range = { start: Number(start), end: Number(end), limit: Number.POSITIVE_INFINITY }
    return listBlocks(chain, range, createSlices())
  },

  getBlocksWithLimit({ chain, createSlices }, params) {
    const [start, limit, config] = readArguments(params, [u64, usize], [shape.contextConfig])
    atLeastConfirmed(config?.commitment)
    if (limit > BLOCKS_RANGE_MAX) throw invalidParams(`Limit too large; max ${BLOCKS_RANGE_MAX}`)
    const top = rootedSlot(chain, config ?? {})
    if (start > BigInt(top)) return []
    return listBlocks(chain, { start: Number(start), end: top, limit: Number(limit) }, createSlices())
  },

  getBlockTime({ chain }, params) {
    const [slot] = readArguments(params, [u64])
    if (slot === 0n) return blockAt(chain, 0)?.time ?? Math.floor(chain.startedAtMs / 1000)
    if (slot <= BigInt(chain.slot('finalized'))) return findBlock(chain, slot, 'finalized').time
    const block = blockAt(chain, slot)
    if (!block) throw blockNotAvailable(slot)
    return block.time
  },

  getBlockHeight({ chain }, params) {
    const [config] = readArguments(params, [], [shape.contextConfig])
    return blockHeightAt(chain, openBank(chain, config).slot)
  },

  getSlot({ chain }, params) {
    const [config] = readArguments(params, [], [shape.contextConfig])
    return openBank(chain, config).slot
  },

  getTransactionCount({ chain }, params) {
    const [config] = readArguments(params, [], [shape.contextConfig])
    return chain.transactionCount(openBank(chain, config).commitment)
  },

  getFirstAvailableBlock({ chain }, params) {
    readArguments(params, [])
    return chain.firstAvailableSlot()
  },

  minimumLedgerSlot({ chain }, params) {
    readArguments(params, [])
    return chain.firstAvailableSlot()
  },

  getMaxRetransmitSlot({ chain }, params) {
    readArguments(params, [])
    return chain.slot('processed')
  },

  getMaxShredInsertSlot({ chain }, params) {
    readArguments(params, [])
    return chain.slot('processed')
  },

  /** One validator has all stake and votes for each block, so all stake is at the depth of the block. */
  getBlockCommitment({ chain }, params) {
    const [slot] = readArguments(params, [u64])
    const stake = totalStake(chain)
    const head = chain.slot('processed')
    const isVotedOn = slot > BigInt(chain.slot('finalized')) && slot <= BigInt(head)
    if (!isVotedOn) return { commitment: null, totalStake: stake }
    const commitment = Array.from({ length: COMMITMENT_DEPTHS }, () => 0n)
    commitment[Math.min(head - Number(slot), COMMITMENT_DEPTHS - 1)] = stake
    return { commitment, totalStake: stake }
  },
}

/** Finalized by default; methods that read the ledger refuse `processed`. */
export function atLeastConfirmed(commitment: Commitment | undefined): Commitment {
  if (commitment === 'processed') throw invalidParams('Method does not support commitment below `confirmed`')
  return commitment ?? DEFAULT_COMMITMENT
}

/** The newest slot at this commitment. Throws -32016 where it is below `minContextSlot`. */
export function rootedSlot(chain: Chain, config: shape.ContextConfig): number {
  const slot = chain.slot(atLeastConfirmed(config.commitment))
  if (config.minContextSlot !== undefined && BigInt(slot) < config.minContextSlot) throw minContextSlotNotReached(slot)
  return slot
}

function findBlock(chain: Chain, slot: bigint, commitment: Commitment): Block {
  const finalized = BigInt(chain.slot('finalized'))
  const isShown = slot <= finalized || (commitment === 'confirmed' && slot <= BigInt(chain.slot('confirmed')))
  if (!isShown) throw blockNotAvailable(slot)
  const block = blockAt(chain, slot)
  if (block) return block
  const firstAvailable = chain.firstAvailableSlot()
  throw slot < BigInt(firstAvailable) ? blockCleanedUp(slot, firstAvailable) : slotSkipped(slot)
}

/** Slots between two looks at the clock. */
const STEP_SLOTS = 4096

/** The slots with a block, as text: writing 500,000 numbers in one step would hold the event loop too long. */
async function listBlocks(
  chain: Chain,
  { start, end, limit }: { readonly start: number; readonly end: number; readonly limit: number },
  slices: TimeSlices,
): Promise<JsonText> {
  const parts: string[] = []
  let left = limit
  let slot = Math.max(start, chain.firstAvailableSlot())
  while (slot <= end && left > 0) {
    if (slices.isSpent()) await slices.yield()
    const step: number[] = []
    for (const stepEnd = slot + STEP_SLOTS; slot < stepEnd && slot <= end && step.length < left; slot++) {
      if (chain.hasBlock(slot)) step.push(slot)
    }
    left -= step.length
    if (step.length > 0) parts.push(step.join())
  }
  return new JsonText(`[${parts.join()}]`)
}
