import type { NoticeWire } from '../../contract/notice-wire.ts'

/** What a notice can be about. */
export const NOTICE_KINDS = [
  'subscription.ending',
  'usage.threshold',
  'node.down',
  'shreds.destination-silent',
  'certificate.ending',
  'backup.missing',
  'test',
] as const
export type NoticeKind = (typeof NOTICE_KINDS)[number]

/** Something that is the case now. Two observations with the same key are the same case, which causes one notice. */
export type Condition = {
  readonly key: string
  readonly kind: NoticeKind
  /** One sentence for a person. */
  readonly message: string
  /** The same for a program, in the names of the API. */
  readonly data: NoticeWire['data']
  /** Not known since the start of the process: it causes no notice, but one that was caused before the start stays the only one. */
  readonly isUndecided?: boolean
}

export type Notice = Omit<Condition, 'key' | 'isUndecided'> & {
  /** `ntc_` and a ULID; the id of the webhook message, so that a receiver recognises a repeated one. */
  readonly id: string
  /** Unix ms. */
  readonly atMs: number
}

export type DeliveryState = 'waiting' | 'delivered' | 'given-up'

/** The way of one notice to one receiver. */
export type Delivery = {
  readonly receiver: string
  state: DeliveryState
  attempts: number
  /** When it was last attempted, unix ms. */
  lastAtMs: number | null
  /** Why the last attempt failed. */
  lastFailure: string | null
}

export type NoticeRecord = Notice & { readonly deliveries: readonly Delivery[] }

export function noticeWire({ id, kind, atMs, message, data }: Notice): NoticeWire {
  return { id, type: kind, timestamp: new Date(atMs).toISOString(), message, data }
}
