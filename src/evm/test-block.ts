import type { EventPayload } from './event/payloads.ts'
import type { ExecRecorder } from './event/recorder.ts'
import type { Hex } from './hex.ts'

/** For tests: one storage access; small numbers become address and key. */
export type TestAccess = { contract: number; slot: number; isModified?: boolean; isTransient?: boolean }

export type TestTxn = { accesses: TestAccess[]; logs?: number; header?: Partial<EventPayload<'TXN_HEADER_START'>> }

export type TestBlock = {
  number: number
  /** Distinguishes proposals of the same number. */
  fork?: number
  txns: TestTxn[]
  prologue?: TestAccess[]
  epilogue?: TestAccess[]
  /** Before November 2025 nodes recorded both perf markers of a transaction before its other events. */
  hasOlderOrder?: boolean
}

export const addressOf = (contract: number): Hex => `0x${contract.toString(16).padStart(40, '0')}`
export const slotOf = (slot: number): Hex => `0x${slot.toString(16).padStart(64, '0')}`
export const idOf = (number: number, fork = 0): Hex =>
  `0x${fork.toString(16).padStart(32, '0')}${number.toString(16).padStart(32, '0')}`

/** Each kind of span has a different length. */
export const TIMES = { perEvent: 10n, txnSpan: 100_000n, wall: 5_000_000n } as const

/** Records a block as a node does, with interleaved transactions, but without its end. Returns its start time. */
export function recordOpenBlock(recorder: ExecRecorder, block: TestBlock): bigint {
  const startNs = 1_800_000_000_000_000_000n + BigInt(block.number) * 400_000_000n
  const id = idOf(block.number, block.fork)
  const { number } = block
  recorder.add(
    'BLOCK_START',
    { id, block_number: BigInt(number), number: BigInt(number), txn_count: BigInt(block.txns.length) },
    { timeNs: startNs },
  )
  recorder.add('BLOCK_PERF_EVM_ENTER', {}, { timeNs: startNs + 1n })
  recordAccesses(recorder, block.prologue ?? [], { timeNs: startNs + 2n, context: 0 })
  const parts = block.txns.map((txn, index) =>
    txnParts(recorder, txn, { index, startNs, hasOlderOrder: block.hasOlderOrder ?? false }),
  )
  for (let part = 0; parts.some((steps) => part < steps.length); part++) for (const steps of parts) steps[part]?.()
  recordAccesses(recorder, block.epilogue ?? [], { timeNs: startNs + TIMES.wall - 3n, context: 2 })
  recorder.add('BLOCK_PERF_EVM_EXIT', {}, { timeNs: startNs + TIMES.wall - 2n })
  return startNs
}

export function recordBlock(recorder: ExecRecorder, block: TestBlock): void {
  const startNs = recordOpenBlock(recorder, block)
  const gasUsed = BigInt(block.txns.length) * 21_000n
  recorder.add(
    'BLOCK_END',
    { eth_block_hash: idOf(block.number, 0xe), gas_used: gasUsed },
    { timeNs: startNs + TIMES.wall },
  )
}

type TxnContext = { index: number; startNs: bigint; hasOlderOrder: boolean }

/** The events of one transaction as steps, so that several transactions can be interleaved. */
function txnParts(recorder: ExecRecorder, txn: TestTxn, { index, startNs, hasOlderOrder }: TxnContext): (() => void)[] {
  const enterNs = startNs + 10n + BigInt(index)
  const position = { timeNs: enterNs + TIMES.perEvent, txnIndex: index }
  const exit = () => recorder.add('TXN_PERF_EVM_EXIT', {}, { timeNs: enterNs + TIMES.txnSpan, txnIndex: index })
  const logs = txn.logs ?? 0
  return [
    () => recorder.add('TXN_PERF_EVM_ENTER', {}, { timeNs: enterNs, txnIndex: index }),
    ...(hasOlderOrder ? [exit] : []),
    () => recorder.add('TXN_HEADER_START', { nonce: BigInt(index), ...txn.header }, position),
    () => recorder.add('TXN_HEADER_END', {}, position),
    () => recorder.add('TXN_EVM_OUTPUT', { status: true, gas_used: 21_000n, log_count: logs }, position),
    ...Array.from({ length: logs }, (_, log) => () => recorder.add('TXN_LOG', { index: log }, position)),
    () => recordAccesses(recorder, txn.accesses, { ...position, context: 1 }),
    () => recorder.add('TXN_END', {}, { timeNs: enterNs + 2n * TIMES.perEvent, txnIndex: index }),
    ...(hasOlderOrder ? [] : [exit]),
  ]
}

type AccessEventContext = { timeNs: bigint; txnIndex?: number; context: number }

function recordAccesses(
  recorder: ExecRecorder,
  accesses: readonly TestAccess[],
  { context, ...position }: AccessEventContext,
): void {
  const byContract = Map.groupBy(accesses, ({ contract }) => contract)
  recorder.add('ACCOUNT_ACCESS_LIST_HEADER', { entry_count: byContract.size, access_context: context }, position)
  for (const [accountIndex, [contract, slots]] of [...byContract].entries()) {
    const address = addressOf(contract)
    const transient = slots.filter(({ isTransient }) => isTransient === true).length
    const counts = { storage_key_count: slots.length - transient, transient_count: transient }
    recorder.add('ACCOUNT_ACCESS', { index: accountIndex, address, access_context: context, ...counts }, position)
    for (const { slot, isModified = false, isTransient = false } of slots) {
      const payload = {
        address,
        access_context: context,
        key: slotOf(slot),
        modified: isModified,
        transient: isTransient,
      }
      recorder.add('STORAGE_ACCESS', payload, { ...position, accountIndex })
    }
  }
}
