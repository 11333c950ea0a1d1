import type { EventBatch } from '../ring/event-batch.ts'
import { type AnyPayload, decodePayload, isExact, payloadJson } from './payload-layout.ts'
import { type EventPayload, PAYLOADS } from './payloads.ts'
import { EVENT_CODES, type EventName, eventName } from './type.ts'

type EventHead = {
  seqno: number
  timeNs: bigint
  /** Sequence number of the BLOCK_START this event belongs to; null outside a block. */
  blockSeqno: number | null
  txnIndex: number | null
  /** STORAGE_ACCESS: index of the ACCOUNT_ACCESS it belongs to; null for all others. */
  accountIndex: number | null
}

/** One decoded event. The folds read single fields from the batch instead, which costs less. */
export type ExecEvent = { [N in EventName]: EventHead & { name: N; payload: EventPayload<N> } }[EventName]

export type DecodedEvent =
  | { ok: true; event: ExecEvent }
  | { ok: false; seqno: number; code: number; reason: 'unknown-type' | 'payload-lost' | 'malformed' }

/** Decodes the event at an index of a batch. */
export function decodeEvent(batch: EventBatch, at: number): DecodedEvent {
  const code = batch.type(at)
  const seqno = batch.seqno(at)
  const name = eventName(code)
  if (name === undefined) return { ok: false, seqno, code, reason: 'unknown-type' }
  const bytes = batch.payload(at)
  if (bytes === undefined) return { ok: false, seqno, code, reason: 'payload-lost' }
  const payload = decodePayload(PAYLOADS[name], bytes)
  if (payload === undefined) return { ok: false, seqno, code, reason: 'malformed' }
  const blockSeqno = batch.blockSeqno(at)
  const txnIndex = batch.txnIndex(at)
  const head: EventHead = {
    seqno,
    timeNs: batch.timeNs(at),
    blockSeqno: blockSeqno === 0 ? null : blockSeqno,
    txnIndex: txnIndex < 0 ? null : txnIndex,
    accountIndex: name === 'STORAGE_ACCESS' ? batch.accountIndex(at) : null,
  }
  return { ok: true, event: { ...head, name, payload } as ExecEvent }
}

/** The payload of a decoded event as a JSON value. */
export function eventPayloadJson(event: ExecEvent): Record<string, unknown> {
  return payloadJson(PAYLOADS[event.name], event.payload as AnyPayload)
}

/** Struct size of each event type by code. A shorter payload is malformed. */
export const FIXED_BYTES: Readonly<Uint16Array> = Uint16Array.from({ length: EVENT_CODES }, (_, code) => {
  const name = eventName(code)
  return name === undefined ? 0 : PAYLOADS[name].bytes
})

/** Whether a payload has exactly the length that its type and its count fields give: then it can be decoded. */
export function hasExactBytes(batch: EventBatch, at: number): boolean {
  const name = eventName(batch.type(at))
  const bytes = batch.payload(at)
  return name !== undefined && bytes !== undefined && isExact(PAYLOADS[name], bytes)
}
