import type { ExecutionRpcMethod } from '../contract/execution-routes.ts'
import type { Hex } from '../contract/stream-events.ts'
import { toQuantity } from '../evm/hex.ts'
import type { BlockAnswer, BlockStore, HeldBlock } from './block-store.ts'
import { RpcFailure } from './rpc-failure.ts'
import { type BlockRef, blockRef, flag, hash32, type LogFilter, logFilter, quantity } from './rpc-params.ts'
import type { JsonObject } from './source-message.ts'

export type EthMethod = (params: readonly unknown[]) => unknown

export type EthMethodDeps = {
  readonly blocks: BlockStore
  readonly chainId: () => number | null
  readonly clientVersion: string
}

/** Logs of one answer. */
const LOGS_MAX = 10_000

/** Every method of `POST /`. Answers come from the blocks in memory alone. */
export function createEthMethods({
  blocks,
  chainId,
  clientVersion,
}: EthMethodDeps): Record<ExecutionRpcMethod, EthMethod> {
  function find(ref: BlockRef): HeldBlock | undefined {
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

  const byRef = (given: unknown): BlockAnswer | undefined => find(blockRef(given, 'the block'))?.answer()
  const byHash = (given: unknown): BlockAnswer | undefined => blocks.byHash(hash32(given, 'the block hash'))?.answer()

  function knownChainId(): number {
    const known = chainId()
    if (known === null) throw new RpcFailure('blocks-not-held', 'no block was seen yet')
    return known
  }

  function getLogs(filter: LogFilter): JsonObject[] {
    const found: JsonObject[] = []
    for (const { answer } of chosenBlocks(filter)) {
      for (const receipt of answer()?.receipts ?? []) {
        for (const log of receipt['logs'] as JsonObject[]) if (isWanted(log, filter)) found.push(log)
        if (found.length > LOGS_MAX)
          throw new RpcFailure('too-large', `more than ${LOGS_MAX} logs match`, { limit: 'logs', size: LOGS_MAX })
      }
    }
    return found
  }

  function chosenBlocks({ blockHash, from, to }: LogFilter): HeldBlock[] {
    if (blockHash !== undefined) return [blocks.byHash(blockHash) ?? notHeld()]
    const first = 'number' in from ? from.number : (find(from)?.number ?? notHeld())
    const last = 'number' in to ? to.number : (find(to)?.number ?? notHeld())
    if (first > last) throw new RpcFailure('invalid-params', 'fromBlock is above toBlock')
    const { range } = blocks
    if (range === undefined || first < range.from || last > range.to) return notHeld()
    const chosen: HeldBlock[] = []
    for (let number = first; number <= last; number++) chosen.push(blocks.byNumber(number) ?? notHeld())
    return chosen
  }

  /** Never an empty list instead: that would say that there are no logs. */
  function notHeld(): never {
    const { range } = blocks
    if (range === undefined) throw new RpcFailure('blocks-not-held', 'no block was seen yet')
    const held = { oldest: toQuantity(range.from), newest: toQuantity(range.to) }
    throw new RpcFailure('blocks-not-held', `held are blocks ${range.from} to ${range.to}`, held)
  }

  function byTxn(given: unknown): { answer: BlockAnswer; index: number } | undefined {
    const found = blocks.byTxn(hash32(given, 'the transaction hash'))
    const answer = found?.held.answer()
    return found === undefined || answer === undefined ? undefined : { answer, index: found.index }
  }

  return {
    eth_chainId: () => toQuantity(knownChainId()),
    net_version: () => String(knownChainId()),
    web3_clientVersion: () => clientVersion,
    eth_blockNumber: () => toQuantity(blocks.latest?.number ?? 0),
    eth_syncing: () => false,
    eth_getBlockByNumber: ([block, full]) => blockJson(byRef(block), flag(full, 'the second parameter')),
    eth_getBlockByHash: ([hash, full]) => blockJson(byHash(hash), flag(full, 'the second parameter')),
    eth_getBlockTransactionCountByNumber: ([block]) => txnCount(byRef(block)),
    eth_getBlockTransactionCountByHash: ([hash]) => txnCount(byHash(hash)),
    eth_getTransactionByHash([hash]) {
      const found = byTxn(hash)
      return found?.answer.block.transactions[found.index] ?? null
    },
    eth_getTransactionByBlockNumberAndIndex: ([block, index]) => txnAt(byRef(block), index),
    eth_getTransactionByBlockHashAndIndex: ([hash, index]) => txnAt(byHash(hash), index),
    eth_getTransactionReceipt([hash]) {
      const found = byTxn(hash)
      return found?.answer.receipts[found.index] ?? null
    },
    eth_getBlockReceipts([block]) {
      const isHash = typeof block === 'string' && block.length === 66
      return (isHash ? byHash(block) : byRef(block))?.receipts ?? null
    },
    eth_getLogs: ([filter]) => getLogs(logFilter(filter)),
  }
}

function blockJson(answer: BlockAnswer | undefined, isFull: boolean): JsonObject | null {
  if (answer === undefined) return null
  if (isFull) return answer.block
  return { ...answer.block, transactions: answer.block.transactions.map(({ hash }) => hash as Hex) }
}

function txnCount(answer: BlockAnswer | undefined): Hex | null {
  return answer === undefined ? null : toQuantity(answer.block.transactions.length)
}

function txnAt(answer: BlockAnswer | undefined, index: unknown): JsonObject | null {
  return answer?.block.transactions[quantity(index, 'the index')] ?? null
}

function isWanted(log: JsonObject, { addresses, topics }: LogFilter): boolean {
  if (addresses !== undefined && !addresses.has(String(log['address']).toLowerCase())) return false
  const found = log['topics'] as readonly string[]
  if (found.length < topics.length) return false
  return topics.every((wanted, at) => wanted === undefined || wanted.has((found[at] as string).toLowerCase()))
}
