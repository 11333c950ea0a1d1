import { toQuantity } from '../../evm/hex.ts'
import type { BlockHandle, Blocks } from './blocks.ts'
import { LimitFailure, RpcFailure } from './failure.ts'
import type { BlockRef, LogFilter } from './params.ts'

/** The block of a number or a tag. */
export function findBlock(blocks: Blocks, ref: BlockRef): BlockHandle | undefined {
  if ('number' in ref) return blocks.byNumber(ref.number)
  switch (ref.tag) {
    case 'safe':
      return blocks.highest(['Voted', 'Finalized', 'Verified'])
    case 'finalized':
      return blocks.highest(['Finalized', 'Verified'])
    case 'earliest':
      return blocks.earliest
    default:
      return blocks.latest
  }
}

/** The blocks whose logs a filter selects. Throws an RpcFailure where one of them is not held, or where they are more than `blocksMax`. */
export function findLogBlocks(blocks: Blocks, { blockHash, from, to }: LogFilter, blocksMax: number): BlockHandle[] {
  if (blockHash !== undefined) return [blocks.byHash(blockHash) ?? notHeld(blocks)]
  const first = 'number' in from ? from.number : (findBlock(blocks, from)?.number ?? notHeld(blocks))
  const last = 'number' in to ? to.number : (findBlock(blocks, to)?.number ?? notHeld(blocks))
  if (first > last) throw new RpcFailure('invalid-params', 'fromBlock is above toBlock')
  const { range } = blocks
  if (range === undefined || first < range.from || last > range.to) return notHeld(blocks)
  if (last - first >= blocksMax)
    throw new LimitFailure(`eth_getLogs covers at most ${blocksMax} blocks`, { limit: 'logBlocks', size: blocksMax })
  const found: BlockHandle[] = []
  for (let number = first; number <= last; number++) found.push(blocks.byNumber(number) ?? notHeld(blocks))
  return found
}

/** Never an empty list instead: it would mean that there are no logs. */
function notHeld({ range, ranges }: Blocks): never {
  if (range === undefined) throw new RpcFailure('blocks-not-held', 'no block was seen yet')
  const held = { oldest: toQuantity(range.from), newest: toQuantity(range.to) }
  const names = ranges.map(({ from, to }) => `${from} to ${to}`)
  throw new RpcFailure('blocks-not-held', `held are blocks ${names.join(', ')}`, held)
}
