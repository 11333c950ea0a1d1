import type { FrameBatch } from '../../platform/grpc/framing.ts'
import type { Named, StreamFilter } from './filter/filter.ts'
import type { Update } from './updates.ts'

/**
 * Adds the messages of one update to a stream's batch: one message with the names of all matching filters of its kind,
 * for a transaction a second one with those of the status filters, for a block one per filter.
 */
export function deliver(update: Update, filter: StreamFilter, batch: FrameBatch): void {
  switch (update.kind) {
    case 'account': {
      const names = namesOf(filter.accounts, (matches) => matches(update))
      if (names.length > 0) batch.add(names, update.body(filter.slices))
      return
    }
    case 'transaction': {
      const names = namesOf(filter.transactions, (matches) => matches(update))
      if (names.length > 0) batch.add(names, update.body())
      const statusNames = namesOf(filter.transactionsStatus, (matches) => matches(update))
      if (statusNames.length > 0) batch.add(statusNames, update.statusBody())
      return
    }
    case 'slot': {
      const names = namesOf(filter.slots, (matches) => matches(update.stage))
      if (names.length > 0) batch.add(names, update.body())
      return
    }
    case 'entry':
      if (filter.entries.length > 0) batch.add(namesOf(filter.entries, always), update.body())
      return
    case 'blockMeta':
      if (filter.blocksMeta.length > 0) batch.add(namesOf(filter.blocksMeta, always), update.body())
      return
    case 'footer':
      if (filter.blockFooter.length > 0) batch.add(namesOf(filter.blockFooter, always), update.body())
      return
    case 'block':
      for (const { name, filter: select } of filter.blocks) {
        batch.add([name], update.encode(select(update, filter.slices)))
      }
  }
}

const NO_NAMES: readonly Uint8Array[] = []

function namesOf<Filter>(filters: readonly Named<Filter>[], matches: (filter: Filter) => boolean) {
  if (filters.length === 0) return NO_NAMES
  const names: Uint8Array[] = []
  for (const { name, filter } of filters) if (matches(filter)) names.push(name)
  return names
}

function always(): boolean {
  return true
}
