/** Event types of the current schema, with the names of the format. */
export const EVENT = {
  RECORD_ERROR: 1,
  BLOCK_START: 2,
  BLOCK_REJECT: 3,
  BLOCK_PERF_EVM_ENTER: 4,
  BLOCK_PERF_EVM_EXIT: 5,
  BLOCK_END: 6,
  BLOCK_QC: 7,
  BLOCK_FINALIZED: 8,
  BLOCK_VERIFIED: 9,
  TXN_HEADER_START: 10,
  TXN_ACCESS_LIST_ENTRY: 11,
  TXN_AUTH_LIST_ENTRY: 12,
  TXN_HEADER_END: 13,
  TXN_REJECT: 14,
  TXN_PERF_EVM_ENTER: 15,
  TXN_PERF_EVM_EXIT: 16,
  TXN_EVM_OUTPUT: 17,
  TXN_LOG: 18,
  TXN_CALL_FRAME: 19,
  TXN_END: 20,
  ACCOUNT_ACCESS_LIST_HEADER: 21,
  ACCOUNT_ACCESS: 22,
  STORAGE_ACCESS: 23,
  EVM_ERROR: 24,
} as const

export type EventName = keyof typeof EVENT

/** One more than the highest known code. */
export const EVENT_CODES = 25

const NAMES: readonly (EventName | undefined)[] = (() => {
  const names: (EventName | undefined)[] = Array.from({ length: EVENT_CODES })
  for (const [name, code] of Object.entries(EVENT)) names[code] = name as EventName
  return names
})()

/** The name of a code; undefined for codes that this build does not know. Such events are counted and skipped. */
export function eventName(code: number): EventName | undefined {
  return NAMES[code]
}

/** A set of event types for lookups on the hot path: `set[type] === 1`. */
export function eventSet(types: readonly number[]): Uint8Array {
  const set = new Uint8Array(EVENT_CODES)
  for (const type of types) set[type] = 1
  return set
}
