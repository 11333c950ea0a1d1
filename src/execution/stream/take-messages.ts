import type { Views } from '../api/views.ts'
import type { BlockStore } from '../rpc/block-store.ts'
import type { SourceFailure, SourceMessage, SourcePosition } from '../source/message.ts'
import type { StreamHub } from './hub.ts'

export type TakeDeps = {
  readonly hub: Pick<StreamHub, 'publish' | 'publishEvents' | 'publishWarning' | 'recording'>
  readonly views: Views
  readonly blocks: Pick<BlockStore, 'add'>
  readonly onProgress: (position: SourcePosition) => void
  readonly onFinalized: (ageMs: number) => void
  readonly onOpened: (way: string) => void
  readonly onRestart: () => void
  readonly onFailure: (failure: SourceFailure | undefined) => void
}

/** What the source tells goes into the views first and out on the stream then: whoever is told of something can also ask for it. */
export function takeMessages(messages: readonly SourceMessage[], deps: TakeDeps): void {
  for (const message of messages) takeMessage(message, deps)
}

function takeMessage(message: SourceMessage, deps: TakeDeps): void {
  const { hub, views } = deps
  switch (message.kind) {
    case 'lifecycle': {
      const { change, record } = message
      views.lifecycle.update(record)
      if (change.to_stage === 'Proposed') views.blockNumber = change.block_number
      if (change.to_stage === 'Finalized') deps.onFinalized(change.block_age_ms)
      return hub.publish('Lifecycle', JSON.stringify(change))
    }
    case 'record':
      return views.lifecycle.update(message.record)
    case 'forgotten':
      return views.lifecycle.forget(message.ids)
    case 'tps':
      views.blockEnded(message.blockNumber, message.tps)
      return hub.publish('TPS', String(message.tps))
    case 'contention':
      views.blockFolded(message.data, message.conflicts)
      hub.publish('ContentionData', JSON.stringify(message.data))
      return hub.publish('ConflictData', JSON.stringify(message.conflicts))
    case 'top-accesses':
      views.topAccesses = message.data
      return hub.publish('TopAccesses', JSON.stringify(message.data))
    case 'block':
      views.chainId = message.block.chainId ?? views.chainId
      return deps.blocks.add(message.block)
    case 'recording':
      return hub.recording(message)
    case 'events':
      return hub.publishEvents(message.events)
    case 'gap': {
      const { fromSeqno: from_seqno, toSeqno: to_seqno, blocksDropped: blocks_dropped } = message
      return hub.publishWarning({ type: 'ring_gap', from_seqno, to_seqno, blocks_dropped })
    }
    case 'restart':
      views.tps = 0
      deps.onRestart()
      return hub.publishWarning({ type: 'ring_restart', previous_ring_seqno: message.previousSeqno })
    case 'opened':
      return deps.onOpened(message.mode)
    case 'failure':
      return deps.onFailure(message.failure)
    case 'progress':
      return deps.onProgress(message.position)
  }
}
