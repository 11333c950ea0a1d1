import type { ExecutionRpcMethod } from '../../contract/execution-routes.ts'
import type { Hex } from '../../contract/stream-events.ts'
import type { Work } from '../../core/work.ts'
import type { EthBlock } from '../../evm/eth-block.ts'
import { toQuantity } from '../../evm/hex.ts'
import type { BlockStore } from './block-store.ts'
import type { CallContext } from './call-meter.ts'
import { LimitFailure, RpcFailure } from './failure.ts'
import type { HeldBlock } from './held-block.ts'
import { findLogs } from './log-search.ts'
import { type BlockRef, blockRef, flag, hash32, type LogFilter, logFilter, quantity } from './params.ts'
import { type RenderedBlocks, writeReceipt, writeTransaction } from './rendered-blocks.ts'

/** Output and work meter of a call. */
/** Writes the result as JSON; throws RpcFailure where there is none. */
export type EthMethod = (params: readonly unknown[], context: CallContext) => Work<void>

export type EthMethodDeps = {
  readonly blocks: BlockStore
  readonly rendered: RenderedBlocks
  readonly chainId: () => number | null
  readonly clientVersion: string
  /** Blocks that one eth_getLogs examines at most. */
  readonly logBlocksMax: number
}

/** Every method of `POST /`. Results come only from the blocks in memory. */
export function createEthMethods(deps: EthMethodDeps): Record<ExecutionRpcMethod, EthMethod> {
  const { blocks, rendered, chainId, clientVersion } = deps

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

  const byRef = (given: unknown): HeldBlock | undefined => find(blockRef(given, 'the block'))
  const byHash = (given: unknown): HeldBlock | undefined => blocks.byHash(hash32(given, 'the block hash'))
  const byTxn = (given: unknown) => blocks.byTxn(hash32(given, 'the transaction hash'))

  function knownChainId(): number {
    const known = chainId()
    if (known === null) throw new RpcFailure('blocks-not-held', 'no block was seen yet')
    return known
  }

  function chosenBlocks({ blockHash, from, to }: LogFilter): HeldBlock[] {
    if (blockHash !== undefined) return [blocks.byHash(blockHash) ?? notHeld()]
    const first = 'number' in from ? from.number : (find(from)?.number ?? notHeld())
    const last = 'number' in to ? to.number : (find(to)?.number ?? notHeld())
    if (first > last) throw new RpcFailure('invalid-params', 'fromBlock is above toBlock')
    const { range } = blocks
    if (range === undefined || first < range.from || last > range.to) return notHeld()
    const { logBlocksMax: size } = deps
    if (last - first >= size)
      throw new LimitFailure(`eth_getLogs covers at most ${size} blocks`, { limit: 'logBlocks', size })
    const chosen: HeldBlock[] = []
    for (let number = first; number <= last; number++) chosen.push(blocks.byNumber(number) ?? notHeld())
    return chosen
  }

  /** Never an empty list instead: it would mean that there are no logs. */
  function notHeld(): never {
    const { range } = blocks
    if (range === undefined) throw new RpcFailure('blocks-not-held', 'no block was seen yet')
    const held = { oldest: toQuantity(range.from), newest: toQuantity(range.to) }
    throw new RpcFailure('blocks-not-held', `held are blocks ${range.from} to ${range.to}`, held)
  }

  function* writeTxnAt(held: HeldBlock | undefined, index: number | undefined, context: CallContext): Work<void> {
    const block = yield* readHeld(held)
    if (block === undefined || index === undefined || index >= block.txnCount) return context.out.add('null')
    writeTransaction(block, index, context.out)
  }

  return {
    eth_chainId: result(() => toQuantity(knownChainId())),
    net_version: result(() => String(knownChainId())),
    web3_clientVersion: result(() => clientVersion),
    eth_blockNumber: result(() => toQuantity(blocks.latest?.number ?? 0)),
    eth_syncing: result(() => false),
    eth_getBlockByNumber: ([block, full], { out }) =>
      rendered.writeBlock(byRef(block), flag(full, 'the second parameter'), out),
    eth_getBlockByHash: ([hash, full], { out }) =>
      rendered.writeBlock(byHash(hash), flag(full, 'the second parameter'), out),
    eth_getBlockTransactionCountByNumber: result(([block]) => txnCount(byRef(block))),
    eth_getBlockTransactionCountByHash: result(([hash]) => txnCount(byHash(hash))),
    eth_getTransactionByHash([hash], context) {
      const found = byTxn(hash)
      return writeTxnAt(found?.held, found?.index, context)
    },
    eth_getTransactionByBlockNumberAndIndex: ([block, index], context) =>
      writeTxnAt(byRef(block), quantity(index, 'the index'), context),
    eth_getTransactionByBlockHashAndIndex: ([hash, index], context) =>
      writeTxnAt(byHash(hash), quantity(index, 'the index'), context),
    *eth_getTransactionReceipt([hash], { out }) {
      const found = byTxn(hash)
      const block = yield* readHeld(found?.held)
      if (found === undefined || block === undefined) return out.add('null')
      yield* writeReceipt(block, found.index, out)
    },
    eth_getBlockReceipts([block], { out }) {
      const isHash = typeof block === 'string' && block.length === 66
      return rendered.writeReceipts(isHash ? byHash(block) : byRef(block), out)
    },
    eth_getLogs([given], context) {
      const filter = logFilter(given)
      return findLogs(filter, chosenBlocks(filter), context)
    },
  }
}

function result(read: (params: readonly unknown[]) => unknown): EthMethod {
  return function* (params, { out }) {
    yield
    out.add(JSON.stringify(read(params)))
  }
}

function* readHeld(held: HeldBlock | undefined): Work<EthBlock | undefined> {
  return held === undefined ? undefined : yield* held.read()
}

function txnCount(held: HeldBlock | undefined): Hex | null {
  return held === undefined ? null : toQuantity(held.txnHashes.length)
}
