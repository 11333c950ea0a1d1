import type { BlockTransaction, BlockTransactions } from '../../contract/execution-history.ts'
import type { WaitingWork } from '../../core/work.ts'
import type { EthBlock } from '../../evm/eth-block.ts'
import { EVENT } from '../../evm/event/type.ts'
import { toQuantity } from '../../evm/hex.ts'
import { nanosBetween } from '../../evm/ring/event-batch.ts'
import type { BlockHandle } from './blocks.ts'
import type { CallMeter } from './call-meter.ts'

export type Page = { readonly limit: number; readonly offset: number }

/** One page of the transactions of a block; undefined where events of the block are missing. */
export function* blockTransactions(
  handle: BlockHandle,
  { limit, offset }: Page,
  meter: CallMeter,
): WaitingWork<BlockTransactions | undefined> {
  const held = yield* handle.load(meter)
  const block = yield* held.read()
  if (block === undefined) return undefined
  const end = Math.min(block.txnCount, offset + limit)
  const transactions: BlockTransaction[] = []
  for (let index = offset; index < end; index++) {
    transactions.push(transactionOf(block, index))
    yield
  }
  return {
    block_number: held.number,
    block_id: held.id,
    block_hash: held.hash,
    timestamp: Number(block.start.timestamp),
    gas_used: Number(block.end.gas_used),
    gas_limit: Number(block.start.gas_limit),
    txn_count: block.txnCount,
    transactions,
    next_offset: end < block.txnCount ? end : null,
  }
}

function transactionOf(block: EthBlock, index: number): BlockTransaction {
  const { header, output } = block.receipt(index)
  return {
    index,
    hash: header.txn_hash,
    from: header.sender,
    to: header.is_contract_creation ? null : header.to,
    value: toQuantity(header.value),
    status: output.status ? 'success' : 'failed',
    gas_used: Number(output.gas_used),
    log_count: output.log_count,
    ...timesOf(block, index),
  }
}

/** By the perf markers of the transaction, which a source without times does not have. */
function timesOf(block: EthBlock, index: number): Pick<BlockTransaction, 'waiting_ns' | 'execution_ns'> {
  const { batch } = block
  let [enter, exit] = [-1, -1]
  for (const at of block.eventsOf(index)) {
    if (batch.type(at) === EVENT.TXN_PERF_EVM_ENTER) enter = at
    if (batch.type(at) === EVENT.TXN_PERF_EVM_EXIT) exit = at
  }
  const between = (from: number, to: number): number =>
    nanosBetween(batch.timeLow(from), batch.timeHigh(from), batch.timeLow(to), batch.timeHigh(to))
  return {
    waiting_ns: enter === -1 ? null : between(0, enter),
    execution_ns: enter === -1 || exit === -1 ? null : between(enter, exit),
  }
}
