import type { EventBatch } from '../../evm/ring/event-batch.ts'
import { HEADER_BYTES, type RingControl, readControl } from '../../evm/ring/layout.ts'
import type { RingReader } from '../../evm/ring/reader.ts'
import type { RingSource } from '../../evm/ring/source.ts'

export type ReadPart =
  | { readonly kind: 'events'; readonly batch: EventBatch }
  | { readonly kind: 'gap'; readonly from: number; readonly to: number; readonly cause: 'lapped' | 'dead-slot' }

/** Everything a ring holds up to the end it has now; a live ring is not followed beyond it. */
export function* readToEnd(reader: RingReader, source: RingSource): Generator<ReadPart> {
  const { lastSeqno } = controlOf(source)
  while (reader.cursor < lastSeqno) {
    const result = reader.poll(0)
    if (result.kind === 'events') yield { kind: 'events', batch: reader.batch }
    else if (result.kind === 'gap') yield result
    // The next event is being written: the end that can be had now.
    else return
  }
}

function controlOf(source: RingSource): RingControl {
  const header = new Uint8Array(HEADER_BYTES)
  source.read(0, header, 0, HEADER_BYTES)
  return readControl(header)
}
