import { RAW_EVENTS, type RawEventName } from '../../contract/stream-events.ts'
import { EVENT_CODES, type EventName, eventName } from '../../evm/event/type.ts'

/** The published name of each event code: BLOCK_QC is BlockQC, TXN_LOG is TxnLog. */
const BY_CODE: readonly (RawEventName | undefined)[] = Array.from({ length: EVENT_CODES }, (_, code) => {
  const name = eventName(code)
  return name === undefined ? undefined : publishedName(name)
})

export function rawEventName(code: number): RawEventName | undefined {
  return BY_CODE[code]
}

function publishedName(name: EventName): RawEventName {
  const plain = name.replaceAll('_', '').toLowerCase()
  return RAW_EVENTS.find((published) => published.toLowerCase() === plain) as RawEventName
}
