import type { ExecutionRpcMethod } from '../../contract/execution-routes.ts'
import type { Hex } from '../../contract/stream-events.ts'
import type { WaitingWork } from '../../core/work.ts'
import { toQuantity } from '../../evm/hex.ts'
import type { BlockHandle, Blocks } from './blocks.ts'
import type { CallContext } from './call-meter.ts'
import { RpcFailure } from './failure.ts'
import { findBlock, findLogBlocks } from './find-blocks.ts'
import { findLogs } from './log-search.ts'
import { blockRef, flag, hash32, logFilter, quantity } from './params.ts'
import { type RenderedBlocks, writeReceipt, writeTransaction } from './rendered-blocks.ts'

/** Writes the result as JSON; throws RpcFailure where there is none. */
export type EthMethod = (params: readonly unknown[], context: CallContext) => WaitingWork<void>

export type EthMethodDeps = {
  readonly blocks: Blocks
  readonly rendered: RenderedBlocks
  readonly chainId: () => number | null
  readonly clientVersion: string
  /** Blocks that one eth_getLogs examines at most. */
  readonly logBlocksMax: number
}

/** Every method of `POST /`. Results come only from the blocks that are held. */
export function createEthMethods(deps: EthMethodDeps): Record<ExecutionRpcMethod, EthMethod> {
  const { blocks, rendered, chainId, clientVersion } = deps

  const byRef = (given: unknown): BlockHandle | undefined => findBlock(blocks, blockRef(given, 'the block'))
  const byHash = (given: unknown): BlockHandle | undefined => blocks.byHash(hash32(given, 'the block hash'))
  const byTxn = (given: unknown, { meter }: CallContext) => blocks.byTxn(hash32(given, 'the transaction hash'), meter)

  function knownChainId(): number {
    const known = chainId()
    if (known === null) throw new RpcFailure('blocks-not-held', 'no block was seen yet')
    return known
  }

  function* writeTxnAt(handle: BlockHandle | undefined, index: number, context: CallContext): WaitingWork<void> {
    const held = handle && (yield* handle.load(context.meter))
    const block = held && (yield* held.readComplete())
    if (block === undefined || index >= block.txnCount) return context.out.add('null')
    writeTransaction(block, index, context.out)
  }

  return {
    eth_chainId: result(() => toQuantity(knownChainId())),
    net_version: result(() => String(knownChainId())),
    web3_clientVersion: result(() => clientVersion),
    eth_blockNumber: result(() => toQuantity(blocks.latestNumber ?? 0)),
    eth_syncing: result(() => false),
    eth_getBlockByNumber: ([block, full], context) =>
      rendered.writeBlock(byRef(block), flag(full, 'the second parameter'), context),
    eth_getBlockByHash: ([hash, full], context) =>
      rendered.writeBlock(byHash(hash), flag(full, 'the second parameter'), context),
    eth_getBlockTransactionCountByNumber: result(([block]) => txnCount(byRef(block))),
    eth_getBlockTransactionCountByHash: result(([hash]) => txnCount(byHash(hash))),
    *eth_getTransactionByHash([hash], context) {
      const found = yield* byTxn(hash, context)
      if (found === undefined) return context.out.add('null')
      writeTransaction(yield* found.held.readComplete(), found.index, context.out)
    },
    eth_getTransactionByBlockNumberAndIndex: ([block, index], context) =>
      writeTxnAt(byRef(block), quantity(index, 'the index'), context),
    eth_getTransactionByBlockHashAndIndex: ([hash, index], context) =>
      writeTxnAt(byHash(hash), quantity(index, 'the index'), context),
    *eth_getTransactionReceipt([hash], context) {
      const found = yield* byTxn(hash, context)
      if (found === undefined) return context.out.add('null')
      yield* writeReceipt(yield* found.held.readComplete(), found.index, context.out)
    },
    eth_getBlockReceipts([block], context) {
      const ref = blockOf(block)
      const isHash = typeof ref === 'string' && ref.length === 66
      return rendered.writeReceipts(isHash ? byHash(ref) : byRef(ref), context)
    },
    eth_getLogs([given], context) {
      const filter = logFilter(given)
      return findLogs(filter, findLogBlocks(blocks, filter, deps.logBlocksMax), context)
    },
  }
}

/** The block of EIP-1898, an object with its hash or number; others are as they are. */
function blockOf(given: unknown): unknown {
  if (typeof given !== 'object' || given === null) return given
  const { blockHash, blockNumber } = given as { blockHash?: unknown; blockNumber?: unknown }
  return blockHash ?? blockNumber ?? given
}

function result(read: (params: readonly unknown[]) => unknown): EthMethod {
  return function* (params, { out }) {
    yield
    out.add(JSON.stringify(read(params)))
  }
}

function txnCount(handle: BlockHandle | undefined): Hex | null {
  return handle === undefined ? null : toQuantity(handle.txnCount)
}
