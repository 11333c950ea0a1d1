import type { EventBatch } from '../ring/event-batch.ts'
import { ACCOUNT_ACCESS, ACCOUNT_ACCESS_LIST_HEADER, STORAGE_ACCESS } from './access-payloads.ts'
import {
  BLOCK_END,
  BLOCK_FINALIZED,
  BLOCK_QC,
  BLOCK_REJECT,
  BLOCK_START,
  BLOCK_VERIFIED,
  EMPTY,
  EVM_ERROR,
  RECORD_ERROR,
} from './block-payloads.ts'
import { type AnyPayload, decodePayload, isExact, type Layout, type PayloadOf, payloadJson } from './payload-layout.ts'
import {
  TXN_ACCESS_LIST_ENTRY,
  TXN_AUTH_LIST_ENTRY,
  TXN_CALL_FRAME,
  TXN_EVM_OUTPUT,
  TXN_HEADER_START,
  TXN_LOG,
  TXN_REJECT,
} from './txn-payloads.ts'
import { EVENT_CODES, type EventName, eventName } from './type.ts'

/** The payload of every event type. */
export const PAYLOADS = {
  RECORD_ERROR,
  BLOCK_START,
  BLOCK_REJECT,
  BLOCK_PERF_EVM_ENTER: EMPTY,
  BLOCK_PERF_EVM_EXIT: EMPTY,
  BLOCK_END,
  BLOCK_QC,
  BLOCK_FINALIZED,
  BLOCK_VERIFIED,
  TXN_HEADER_START,
  TXN_ACCESS_LIST_ENTRY,
  TXN_AUTH_LIST_ENTRY,
  TXN_HEADER_END: EMPTY,
  TXN_REJECT,
  TXN_PERF_EVM_ENTER: EMPTY,
  TXN_PERF_EVM_EXIT: EMPTY,
  TXN_EVM_OUTPUT,
  TXN_LOG,
  TXN_CALL_FRAME,
  TXN_END: EMPTY,
  ACCOUNT_ACCESS_LIST_HEADER,
  ACCOUNT_ACCESS,
  STORAGE_ACCESS,
  EVM_ERROR,
} satisfies Record<EventName, Layout>

export type EventPayload<N extends EventName> = PayloadOf<(typeof PAYLOADS)[N]>

type EventHead = {
  seqno: number
  timeNs: bigint
  /** Sequence number of the BLOCK_START this event belongs to; null outside a block. */
  blockSeqno: number | null
  txnIndex: number | null
  /** STORAGE_ACCESS: index of the ACCOUNT_ACCESS it belongs to; null for all others. */
  accountIndex: number | null
}

/** One event with everything in it, for tools. Folds read the batch instead. */
export type ExecEvent = { [N in EventName]: EventHead & { name: N; payload: EventPayload<N> } }[EventName]

export type DecodedEvent =
  | { ok: true; event: ExecEvent }
  | { ok: false; seqno: number; code: number; reason: 'unknown-type' | 'payload-lost' | 'malformed' }

/** Decodes the event at a place of a batch into plain values. */
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

/** The payload of a decoded event as JSON can hold it. */
export function eventPayloadJson(event: ExecEvent): Record<string, unknown> {
  return payloadJson(PAYLOADS[event.name], event.payload as AnyPayload)
}

/** Fixed part of each type by code; a shorter payload is not what its type claims. */
export const FIXED_BYTES: Readonly<Uint16Array> = Uint16Array.from({ length: EVENT_CODES }, (_, code) => {
  const name = eventName(code)
  return name === undefined ? 0 : PAYLOADS[name].bytes
})

/** Whether a payload is exactly as long as its type and its counts claim: such an event can be decoded. */
export function hasExactBytes(batch: EventBatch, at: number): boolean {
  const name = eventName(batch.type(at))
  const bytes = batch.payload(at)
  return name !== undefined && bytes !== undefined && isExact(PAYLOADS[name], bytes)
}
