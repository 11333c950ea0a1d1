import type { AccountUpdate } from './account-update.ts'
import type { BlockMetaUpdate, BlockUpdate } from './block-update.ts'
import type { EntryUpdate } from './entry-update.ts'
import type { FooterUpdate } from './footer-update.ts'
import type { SlotUpdate } from './slot-update.ts'
import type { TransactionUpdate } from './transaction-update.ts'

/**
 * An update of a stream. Each update encodes its part of the message SubscribeUpdate (the oneof field and created_at)
 * once; a stream prepends the names of its own filters. Field numbers: proto/geyser.proto.
 */
export type Update =
  | AccountUpdate
  | TransactionUpdate
  | EntryUpdate
  | BlockUpdate
  | BlockMetaUpdate
  | FooterUpdate
  | SlotUpdate
