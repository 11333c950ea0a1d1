import { createSeededRandom, type Random, randomInt } from '../../../src/core/random.ts'
import { makeTestChain } from '../../../src/indexer/ingest/test-blocks.ts'
import type { ChainBlock } from '../../../src/solana/chain-block.ts'
import { encodeBase58 } from '../../../src/solana/crypto/base58.ts'

/** One slot of a chain on which a slot may have several banks, of which at most one becomes final. */
export type HistorySlot = {
  readonly slot: number
  /** The block of the bank that becomes final; undefined where the slot is skipped. */
  readonly final: ChainBlock | undefined
  /** Blocks of the other banks: other transactions, another order, another parent. */
  readonly losers: readonly ChainBlock[]
  /** A loser that a node may take for confirmed until the slot is final. */
  readonly misleading: ChainBlock | undefined
  /** The position of the slot during which it is finalized; it never decreases from slot to slot. */
  readonly finalAt: number
}

const LOSERS_PERCENT = 45
/** Slots between a block and its finalization, at most: with the new consensus one or two, here more, so that blocks are written before. */
const FINAL_LAG_MAX = 4

/** Slots in order, without a gap. The last `plain` of them have one bank each. */
export function makeBankHistory({
  seed,
  blocks,
  plain,
}: {
  seed: number
  blocks: number
  plain: number
}): HistorySlot[] {
  const random = createSeededRandom(seed)
  const chain = makeTestChain({ seed, blocks: blocks + plain, transactionsPerBlock: 3 })
  const bySlot = new Map(chain.map((block) => [block.slot, block]))
  const lastSlot = (chain.at(-1) as ChainBlock).slot
  const firstPlain = (chain[blocks] as ChainBlock).slot
  const history: HistorySlot[] = []
  let parent: ChainBlock | undefined
  for (let slot = (chain[0] as ChainBlock).slot; slot <= lastSlot; slot++) {
    const final = bySlot.get(slot)
    const before = history.at(-1)
    const hasLosers = slot < firstPlain && randomInt(random, 100) < LOSERS_PERCENT
    const like = final ?? parent
    const losers =
      hasLosers && like !== undefined
        ? Array.from({ length: 1 + randomInt(random, 2) }, () => makeLoser(random, slot, like, final, parent, before))
        : []
    const misleading = randomInt(random, 2) === 0 ? losers.find((block) => mayBeConfirmed(block, before)) : undefined
    const at = history.length
    const finalAt = Math.max(before?.finalAt ?? 0, at + randomInt(random, FINAL_LAG_MAX + 1))
    history.push({ slot, final, losers, misleading, finalAt })
    parent = final ?? parent
  }
  return history
}

/** A block that the node would confirm builds on a final one, or on one that it confirmed as well. */
function mayBeConfirmed(block: ChainBlock, before: HistorySlot | undefined): boolean {
  return (
    before === undefined ||
    !before.losers.some(({ blockhash }) => blockhash === block.parentBlockhash) ||
    before.misleading?.blockhash === block.parentBlockhash
  )
}

function makeLoser(
  random: Random,
  slot: number,
  like: ChainBlock,
  final: ChainBlock | undefined,
  parent: ChainBlock | undefined,
  before: HistorySlot | undefined,
): ChainBlock {
  const transactions = like.transactions
    .filter(() => randomInt(random, 3) > 0)
    .toSorted(() => randomInt(random, 3) - 1)
    .map((each, index) => ({ ...each, index }))
  // On a loser of the slot before, on the parent of the final block's parent, or on the same parent.
  const onto = randomInt(random, 3)
  const rival = before?.losers[0]
  const link =
    onto === 0 && rival !== undefined
      ? { parentSlot: rival.slot, parentBlockhash: rival.blockhash }
      : onto === 1 && parent !== undefined
        ? { parentSlot: parent.parentSlot, parentBlockhash: parent.parentBlockhash }
        : final === undefined
          ? { parentSlot: (parent as ChainBlock).slot, parentBlockhash: (parent as ChainBlock).blockhash }
          : { parentSlot: final.parentSlot, parentBlockhash: final.parentBlockhash }
  return { ...like, ...link, slot, blockhash: encodeBase58(random.bytes(32)), transactions }
}
