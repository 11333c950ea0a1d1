import type { WaitingWork, Work } from '../../core/work.ts'
import type { EthBlock, EthReceipt } from '../../evm/eth-block.ts'
import { logJson } from '../../evm/eth-json.ts'
import { fromHex } from '../../evm/hex.ts'
import { bloomBits, mayContain } from '../../evm/logs-bloom.ts'
import { PRICE, UNIT } from '../api/work-budget.ts'
import type { BlockHandle } from './blocks.ts'
import type { CallContext } from './call-meter.ts'
import { LimitFailure } from './failure.ts'
import type { LogFilter } from './params.ts'

/** Maximum number of logs in a result. */
const LOGS_MAX = 10_000

/** Bloom bits of alternative values, of which a block must contain at least one. */
type BloomTest = readonly (readonly number[])[]

/** Writes the logs that match the filter. Blocks whose bloom excludes a match are not decoded. */
export function* findLogs(filter: LogFilter, blocks: readonly BlockHandle[], context: CallContext): WaitingWork<void> {
  const { meter, out } = context
  const values = [filter.addresses, ...filter.topics].filter((choice) => choice !== undefined)
  const valueCount = values.reduce((sum, { size }) => sum + size, 0)
  meter.take(blocks.length * PRICE.logBlock + Math.ceil(valueCount / UNIT.filterValues))
  const tests: BloomTest[] = []
  for (const choice of values) {
    const test: (readonly number[])[] = []
    for (const value of choice) {
      test.push(bloomBits(fromHex(value)))
      yield
    }
    tests.push(test)
  }
  let found = 0
  out.add('[')
  for (const handle of blocks) {
    yield
    const { bloom } = handle
    if (bloom !== undefined && !tests.every((test) => test.some((bits) => mayContain(bloom, bits)))) continue
    const held = yield* handle.load(meter)
    found = yield* searchBlock(yield* held.readComplete(), filter, context, found)
  }
  out.add(']')
}

/** Returns the number of logs found so far, this block included. */
function* searchBlock(block: EthBlock, filter: LogFilter, { meter, out }: CallContext, before: number): Work<number> {
  let found = before
  let examined = 0
  for (let index = 0; index < block.txnCount; index++) {
    yield
    let txn: EthReceipt | undefined
    let logIndex = -1
    for (const at of block.logsOf(index)) {
      logIndex += 1
      if (++examined % UNIT.items === 0) {
        meter.charge(1)
        yield
      }
      if (!matches(block.logKeys(at), filter)) continue
      if (found === LOGS_MAX)
        throw new LimitFailure(`more than ${LOGS_MAX} logs match`, { limit: 'logs', size: LOGS_MAX })
      out.admit(block.batch.payloadSize(at) * 2)
      txn ??= block.receipt(index)
      out.add(`${found === 0 ? '' : ','}${JSON.stringify(logJson(block, txn, block.log(at), logIndex))}`)
      found += 1
      yield
    }
  }
  return found
}

function matches(log: { address: string; topics: readonly string[] }, { addresses, topics }: LogFilter): boolean {
  if (addresses !== undefined && !addresses.has(log.address)) return false
  if (log.topics.length < topics.length) return false
  return topics.every((choice, at) => choice === undefined || choice.has(log.topics[at] as string))
}
