import { type Hex, RAW_EVENTS, type RawEvent, type RawEventName, type Stage } from '../../contract/stream-events.ts'
import { decodeEvent, type ExecEvent, eventPayloadJson } from '../../evm/event/exec-event.ts'
import { integerJson } from '../../evm/event/payload-layout.ts'
import { PAYLOADS } from '../../evm/event/payloads.ts'
import { EVENT, EVENT_CODES, type EventName, eventName } from '../../evm/event/type.ts'
import type { EventBatch } from '../../evm/ring/event-batch.ts'
import type { FilterFields, RawEventPart } from './message.ts'
import type { RawEventSelection } from './raw-event-demand.ts'

type TxnHeader = { hash: Hex; fields: FilterFields }

/** `Events` frames are split at these limits, so that none is much larger than the figures of a block. */
const EVENTS_PER_FRAME = 256
const BYTES_PER_FRAME = 128 * 1024

const BLOCK_NUMBER_OFFSET = PAYLOADS.BLOCK_START.fields.block_number[1]

/**
 * Encodes the selected ring events as elements of `Events` frames. The selection changes only between blocks, so that the events
 * of a block are complete and have the hash of their transaction.
 */
export class RawEvents {
  readonly #selected = new Set<RawEventName>()
  #next: RawEventSelection | undefined
  #blockSeqno = 0
  /** Null when the payload of its BLOCK_START has expired. */
  #blockNumber: number | string | null = null
  readonly #txns = new Map<number, TxnHeader>()
  /** Elements of the next frame. */
  #parts: RawEventPart[] = []
  #partBytes = 0

  /** Takes effect with `applySelection`. */
  select(selection: RawEventSelection): void {
    this.#next = selection
  }

  /** Called between two blocks: applies and returns the new selection, if there is one. */
  applySelection(): { names: RawEventName[]; version: number } | undefined {
    if (this.#next === undefined) return undefined
    const { names, version } = this.#next
    this.#selected.clear()
    for (const name of names) this.#selected.add(name)
    this.#next = undefined
    return { names: [...names], version }
  }

  get isIdle(): boolean {
    return this.#selected.size === 0
  }

  /** After a gap or in another ring the open block is unknown. */
  forgetBlock(): void {
    this.#blockSeqno = 0
    this.#txns.clear()
  }

  /** Adds an event if it is selected; returns true when the frame is full. Must be called for every event in order unless idle. */
  add(batch: EventBatch, at: number): boolean {
    const part = this.#encode(batch, at)
    if (part === undefined) return false
    this.#parts.push(part)
    this.#partBytes += part.json.length
    return this.#parts.length >= EVENTS_PER_FRAME || this.#partBytes >= BYTES_PER_FRAME
  }

  /** The elements of one frame; undefined when there are none. */
  takeFrame(): RawEventPart[] | undefined {
    if (this.#parts.length === 0) return undefined
    const parts = this.#parts
    this.#parts = []
    this.#partBytes = 0
    return parts
  }

  #encode(batch: EventBatch, at: number): RawEventPart | undefined {
    const code = batch.type(at)
    if (code === EVENT.BLOCK_START) this.#beginBlock(batch, at)
    const name = PUBLISHED_NAMES[code]
    if (name === undefined || (!this.#selected.has(name) && code !== EVENT.TXN_HEADER_START)) return undefined
    const decoded = decodeEvent(batch, at)
    if (!decoded.ok) return undefined
    const { event } = decoded
    const fields = filterFields(event)
    const isInBlock = event.blockSeqno !== null && event.blockSeqno === this.#blockSeqno
    if (isInBlock && event.name === 'TXN_HEADER_START' && event.txnIndex !== null)
      this.#txns.set(event.txnIndex, { hash: event.payload.txn_hash, fields })
    if (!this.#selected.has(name)) return undefined
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

  #beginBlock(batch: EventBatch, at: number): void {
    this.#txns.clear()
    this.#blockSeqno = batch.seqno(at)
    const payload = batch.payload(at)
    this.#blockNumber =
      payload === undefined ? null : integerJson(viewOf(payload).getBigUint64(BLOCK_NUMBER_OFFSET, true))
  }
}

/** The published name of each event code: BLOCK_QC is BlockQC, TXN_LOG is TxnLog. */
const PUBLISHED_NAMES: readonly (RawEventName | undefined)[] = Array.from({ length: EVENT_CODES }, (_, code) => {
  const name = eventName(code)
  return name === undefined ? undefined : publishedName(name)
})

function publishedName(name: EventName): RawEventName {
  const compact = name.replaceAll('_', '').toLowerCase()
  return RAW_EVENTS.find((published) => published.toLowerCase() === compact) as RawEventName
}

/** The stage that a consensus event reports; all other events of a block happen while it is proposed. */
const STAGE_OF: Partial<Record<ExecEvent['name'], Stage>> = {
  BLOCK_QC: 'Voted',
  BLOCK_FINALIZED: 'Finalized',
  BLOCK_VERIFIED: 'Verified',
  BLOCK_REJECT: 'Rejected',
}

function ownBlockNumber({ payload }: ExecEvent): number | string | null {
  return 'block_number' in payload ? integerJson(payload.block_number) : null
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

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength)
}
