import type { EventPayload, ExecEvent } from './exec-event.ts'

/** Everything of a block that JSON-RPC answers are made of. */
export type EthBlock = {
  start: EventPayload<'BLOCK_START'>
  end: EventPayload<'BLOCK_END'>
  /** In index order. */
  txns: EthTransaction[]
}

export type EthTransaction = {
  header: EventPayload<'TXN_HEADER_START'>
  accessList: EventPayload<'TXN_ACCESS_LIST_ENTRY'>[]
  authList: EventPayload<'TXN_AUTH_LIST_ENTRY'>[]
  output: EventPayload<'TXN_EVM_OUTPUT'>
  logs: EventPayload<'TXN_LOG'>[]
  /** The ring gives the gas of each transaction alone; receipts want the running sum in index order. */
  cumulativeGas: bigint
  /** The ring numbers logs within their transaction; JSON-RPC numbers them through the block. */
  firstLogIndex: number
}

/** Puts a block together from its events, which arrive interleaved. Undefined when something of it is missing. */
export function assembleEthBlock(events: Iterable<ExecEvent>): EthBlock | undefined {
  const drafts = new Map<number, Draft>()
  let start: EthBlock['start'] | undefined
  let end: EthBlock['end'] | undefined
  for (const event of events) {
    if (event.name === 'BLOCK_START') start = event.payload
    else if (event.name === 'BLOCK_END') end = event.payload
    else if (event.txnIndex !== null) addToDraft(draftOf(drafts, event.txnIndex), event)
  }
  if (start === undefined || end === undefined || drafts.size !== Number(start.txn_count)) return undefined
  const txns: EthTransaction[] = []
  let cumulativeGas = 0n
  let firstLogIndex = 0
  for (let index = 0; index < drafts.size; index++) {
    const draft = drafts.get(index)
    if (draft?.header === undefined || draft.output === undefined || draft.logs.length !== draft.output.log_count)
      return undefined
    const { header, output, accessList, authList, logs } = draft
    cumulativeGas += output.gas_used
    txns.push({ header, accessList, authList, output, logs, cumulativeGas, firstLogIndex })
    firstLogIndex += logs.length
  }
  return { start, end, txns }
}

type Draft = Pick<EthTransaction, 'accessList' | 'authList' | 'logs'> &
  Partial<Pick<EthTransaction, 'header' | 'output'>>

function draftOf(drafts: Map<number, Draft>, txnIndex: number): Draft {
  const known = drafts.get(txnIndex)
  if (known !== undefined) return known
  const draft: Draft = { accessList: [], authList: [], logs: [] }
  drafts.set(txnIndex, draft)
  return draft
}

function addToDraft(draft: Draft, event: ExecEvent): void {
  switch (event.name) {
    case 'TXN_HEADER_START':
      draft.header = event.payload
      return
    case 'TXN_ACCESS_LIST_ENTRY':
      draft.accessList.push(event.payload)
      return
    case 'TXN_AUTH_LIST_ENTRY':
      draft.authList.push(event.payload)
      return
    case 'TXN_EVM_OUTPUT':
      draft.output = event.payload
      return
    case 'TXN_LOG':
      draft.logs.push(event.payload)
      return
    default:
  }
}
