import type { Hex, RawEvent, RawEventName, Stage } from '../../contract/stream-events.ts'
import { decodeEvent, type ExecEvent, eventPayloadJson } from '../../evm/event/exec-event.ts'
import { wholeNumberJson } from '../../evm/event/payload-layout.ts'
import { EVENT } from '../../evm/event/type.ts'
import { toHex } from '../../evm/hex.ts'
import type { EventBatch } from '../../evm/ring/event-batch.ts'
import { rawEventName } from './event-names.ts'
import type { FilterFields, RawEventPart } from './message.ts'
import type { Wanted } from './wanted-events.ts'

type TxnHead = { hash: Hex; fields: FilterFields }

/**
 * Turns ring events that somebody listens to into elements of `Events` frames. What it listens to changes only between blocks, so that
 * every event of a block is told with the hash of its transaction, or none is.
 */
export class RawEventMaker {
  readonly #wanted = new Set<RawEventName>()
  #next: Wanted | undefined
  #blockSeqno = 0
  #blockNumber: number | string = 0
  readonly #txns = new Map<number, TxnHead>()

  /** Takes effect with `turn`. */
  shortage(wanted: Wanted): void {
    this.#next = wanted
  }

  /** Between two blocks: the new set, when there is one. */
  turn(): { names: RawEventName[]; version: number } | undefined {
    if (this.#next === undefined) return undefined
    const { names, version } = this.#next
    this.#wanted.clear()
    for (const name of names) this.#wanted.add(name)
    this.#next = undefined
    return { names: [...names], version }
  }

  get isIdle(): boolean {
    return this.#wanted.size === 0
  }

  /** Another ring, or a gap: what is remembered of the open block is of no use. */
  forgetBlock(): void {
    this.#blockSeqno = 0
    this.#txns.clear()
  }

  /** The element for an event, if somebody listens to it. Must see every event in order, whether somebody does or not. */
  make(batch: EventBatch, at: number): RawEventPart | undefined {
    const code = batch.type(at)
    if (code === EVENT.BLOCK_START) this.#begin(batch, at)
    const name = rawEventName(code)
    if (name === undefined || (!this.#wanted.has(name) && code !== EVENT.TXN_HEADER_START)) return undefined
    const decoded = decodeEvent(batch, at)
    if (!decoded.ok) return undefined
    const { event } = decoded
    const fields = filterFields(event)
    const isInBlock = event.blockSeqno !== null && event.blockSeqno === this.#blockSeqno
    if (isInBlock && event.name === 'TXN_HEADER_START' && event.txnIndex !== null)
      this.#txns.set(event.txnIndex, { hash: event.payload.txn_hash, fields })
    if (!this.#wanted.has(name)) return undefined
    const txn = isInBlock && event.txnIndex !== null ? this.#txns.get(event.txnIndex) : undefined
    const element: RawEvent = {
      event_name: name,
      block_number: isInBlock ? this.#blockNumber : ownBlockNumber(event),
      txn_idx: event.txnIndex,
      txn_hash: txn?.hash ?? null,
      commit_stage: STAGE_OF[event.name] ?? (event.blockSeqno === null ? null : 'Proposed'),
      payload: { type: name, ...eventPayloadJson(event) },
      seqno: event.seqno,
      timestamp_ns: event.timeNs.toString(),
    }
    return { name, json: JSON.stringify(element), fields, header: txn?.fields }
  }

  #begin(batch: EventBatch, at: number): void {
    this.#txns.clear()
    this.#blockSeqno = batch.seqno(at)
    const payload = batch.payload(at)
    this.#blockNumber = payload === undefined ? 0 : wholeNumberJson(viewOf(payload).getBigUint64(32, true))
  }
}

/** Consensus events tell of a stage; everything inside a block happens while it is proposed. */
const STAGE_OF: Partial<Record<ExecEvent['name'], Stage>> = {
  BLOCK_QC: 'Voted',
  BLOCK_FINALIZED: 'Finalized',
  BLOCK_VERIFIED: 'Verified',
  BLOCK_REJECT: 'Rejected',
}

function ownBlockNumber({ payload }: ExecEvent): number | string | null {
  return 'block_number' in payload ? wholeNumberJson(payload.block_number) : null
}

function filterFields(event: ExecEvent): FilterFields {
  const fields: FilterFields = event.txnIndex === null ? {} : { txnIndex: event.txnIndex }
  switch (event.name) {
    case 'TXN_LOG':
      return {
        ...fields,
        logIndex: event.payload.index,
        addresses: [event.payload.address],
        topics: event.payload.topics,
      }
    case 'TXN_CALL_FRAME':
      return { ...fields, addresses: [event.payload.caller, event.payload.call_target] }
    case 'TXN_HEADER_START': {
      const { sender, to, is_contract_creation } = event.payload
      return { ...fields, addresses: is_contract_creation ? [sender] : [sender, to] }
    }
    case 'ACCOUNT_ACCESS':
    case 'STORAGE_ACCESS':
    case 'TXN_ACCESS_LIST_ENTRY':
      return { ...fields, addresses: [event.payload.address] }
    case 'TXN_AUTH_LIST_ENTRY':
      return { ...fields, addresses: [event.payload.address, event.payload.authority] }
    default:
      return fields
  }
}

/** Chain id and consensus id of a BLOCK_START. */
export function blockStartFacts(payload: Uint8Array): { id: Hex; number: number; chainId: number } {
  const view = viewOf(payload)
  return {
    id: toHex(payload, 0, 32),
    number: Number(view.getBigUint64(32, true)),
    chainId: Number(view.getBigUint64(80, true)),
  }
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength)
}
