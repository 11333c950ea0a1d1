import assert from 'node:assert/strict'
import type { EthBlockHead, EthReceipt, EthTransaction } from './eth-block.ts'
import { logJson, receiptJson, transactionJson } from './eth-json.ts'
import type { ExecEvent } from './event/exec-event.ts'
import type { EventPayload } from './event/payloads.ts'
import type { Hex } from './hex.ts'
import { BloomBuilder } from './logs-bloom.ts'

type Log = EventPayload<'TXN_LOG'>

/** For tests: a completely decoded block. */
export type DecodedBlock = EthBlockHead & {
  readonly txns: readonly (EthTransaction & EthReceipt & { readonly logs: readonly Log[] })[]
}

type Draft = {
  header?: EthTransaction['header']
  output?: EthReceipt['output']
  accessList: EventPayload<'TXN_ACCESS_LIST_ENTRY'>[]
  authList: EventPayload<'TXN_AUTH_LIST_ENTRY'>[]
  logs: Log[]
}

/** Assembles a block from its interleaved events. Undefined when it is incomplete. */
export function assembleBlock(events: Iterable<ExecEvent>): DecodedBlock | undefined {
  const drafts = new Map<number, Draft>()
  let start: EthBlockHead['start'] | undefined
  let end: EthBlockHead['end'] | undefined
  for (const event of events) {
    if (event.name === 'BLOCK_START') start = event.payload
    else if (event.name === 'BLOCK_END') end = event.payload
    else if (event.txnIndex !== null) addToDraft(drafts.getOrInsertComputed(event.txnIndex, emptyDraft), event)
  }
  if (start === undefined || end === undefined || drafts.size !== Number(start.txn_count)) return undefined
  const txns: DecodedBlock['txns'][number][] = []
  let cumulativeGas = 0n
  let firstLogIndex = 0
  for (let index = 0; index < drafts.size; index++) {
    const { header, output, accessList, authList, logs } = drafts.get(index) ?? emptyDraft()
    if (header === undefined || output === undefined || logs.length !== output.log_count) return undefined
    cumulativeGas += output.gas_used
    txns.push({ index, header, accessList, authList, output, logs, cumulativeGas, firstLogIndex })
    firstLogIndex += logs.length
  }
  return { start, end, txns }
}

export function transactionOf(block: DecodedBlock, index: number): Record<string, unknown> {
  return transactionJson(block, block.txns[index] ?? assert.fail())
}

export function receiptOf(block: DecodedBlock, index: number): Record<string, unknown> {
  const txn = block.txns[index] ?? assert.fail()
  const logs = txn.logs.map((_, at) => logOf(block, index, at))
  return { ...receiptJson(block, txn, bloomOf(txn.logs)), logs }
}

export function logOf(block: DecodedBlock, index: number, at: number): Record<string, unknown> {
  const txn = block.txns[index] ?? assert.fail()
  return logJson(block, txn, txn.logs[at] ?? assert.fail(), at)
}

export function bloomOf(logs: readonly Pick<Log, 'address' | 'topics'>[]): Hex {
  const bloom = new BloomBuilder()
  for (const log of logs) bloom.add(log)
  return bloom.take()
}

function emptyDraft(): Draft {
  return { accessList: [], authList: [], logs: [] }
}

function addToDraft(draft: Draft, event: ExecEvent): void {
  if (event.name === 'TXN_HEADER_START') draft.header = event.payload
  else if (event.name === 'TXN_ACCESS_LIST_ENTRY') draft.accessList.push(event.payload)
  else if (event.name === 'TXN_AUTH_LIST_ENTRY') draft.authList.push(event.payload)
  else if (event.name === 'TXN_EVM_OUTPUT') draft.output = event.payload
  else if (event.name === 'TXN_LOG') draft.logs.push(event.payload)
}
