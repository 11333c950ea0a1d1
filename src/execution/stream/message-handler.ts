import { processTimeMs } from '../../platform/process/worker.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { Views } from '../api/views.ts'
import type { History } from '../history/history.ts'
import type { ExecutionMetrics } from '../metrics.ts'
import { outcomeOf } from '../rpc/block-store.ts'
import type { Blocks } from '../rpc/blocks.ts'
import type { Liveness } from '../source/liveness.ts'
import { NO_STATS, type SourceFailure, type SourceMessage, type SourcePosition } from '../source/message.ts'
import type { StreamHub } from './hub.ts'

export type MessageHandlerDeps = {
  readonly hub: Pick<StreamHub, 'publish' | 'publishEvents' | 'publishWarning' | 'onRawEventsActive'>
  readonly views: Views
  readonly blocks: Pick<Blocks, 'add' | 'proposed' | 'settle'>
  readonly history: History
  readonly liveness: Pick<Liveness, 'beat'>
  readonly metrics: Pick<ExecutionMetrics, 'publish' | 'finalize' | 'ringRestarts'>
  readonly log: Logger
}

/**
 * Handles the messages of a source: each updates the views first and is published then, so that a client that gets a frame can also read
 * its data over REST.
 */
export class MessageHandler {
  position: SourcePosition = { seqno: 0, lagEvents: 0, readMs: 0, stats: NO_STATS }
  /** Why the source cannot be read; undefined while it can. */
  failure: SourceFailure | undefined
  readonly #deps: MessageHandlerDeps

  constructor(deps: MessageHandlerDeps) {
    this.#deps = deps
  }

  handle(messages: readonly SourceMessage[]): void {
    for (const message of messages) this.#handleOne(message)
  }

  #handleOne(message: SourceMessage): void {
    const { hub, views, blocks, history, metrics, log } = this.#deps
    switch (message.kind) {
      case 'lifecycle': {
        const { change, record } = message
        views.lifecycle.update(record)
        history.lifecycle(change, record, message.timeMs)
        if (change.to_stage === 'Proposed') {
          views.blockNumber = change.block_number
          blocks.proposed(change.block_hash)
        }
        if (change.to_stage === 'Finalized') {
          views.blockFinalized(change.block_number, change.block_hash)
          metrics.finalize.observe(change.block_age_ms / 1000)
        }
        if (change.to_stage === 'Rejected') views.blockRejected(change.block_number, change.block_hash)
        const outcome = outcomeOf(change.to_stage)
        if (outcome !== undefined) blocks.settle(change.block_hash, outcome)
        return hub.publish('Lifecycle', JSON.stringify(change))
      }
      case 'lifecycle-record':
        history.lifecycleRecord(message.record)
        return views.lifecycle.update(message.record)
      case 'forgotten':
        return views.lifecycle.forget(message.ids)
      case 'tps':
        views.blockEnded(message.blockNumber, message.id, message.tps)
        if (message.id !== undefined)
          history.blockEnded({
            id: message.id,
            number: message.blockNumber,
            tps: message.tps,
            recordedMs: message.timeMs,
          })
        return message.tps === null ? undefined : hub.publish('TPS', String(message.tps))
      case 'contention':
        views.blockFolded(message.data, message.conflicts)
        history.blockFolded({ contention: message.data, conflicts: message.conflicts, accesses: message.accesses })
        hub.publish('ContentionData', JSON.stringify(message.data))
        return hub.publish('ConflictData', JSON.stringify(message.conflicts))
      case 'top-accesses':
        views.topAccesses = message.data
        history.topAccesses = { data: message.data, accountsSeen: message.accountsSeen ?? 0 }
        return hub.publish('TopAccesses', JSON.stringify(message.data))
      case 'block':
        views.chainId = message.block.chainId ?? views.chainId
        return history.block(blocks.add(message.block), message.block.chainId)
      case 'raw-events-active':
        return hub.onRawEventsActive(message)
      case 'events':
        return hub.publishEvents(message.events)
      case 'gap': {
        const { fromSeqno: from_seqno, toSeqno: to_seqno, blocksDropped: blocks_dropped } = message
        history.ringGap(to_seqno - from_seqno + 1, blocks_dropped)
        return hub.publishWarning({ type: 'ring_gap', from_seqno, to_seqno, blocks_dropped })
      }
      case 'restart':
        views.tps = 0
        metrics.ringRestarts.inc()
        history.ringRestart()
        log.warn({ lastSeqno: this.position.seqno }, 'the event ring was replaced')
        return hub.publishWarning({ type: 'ring_restart', previous_ring_seqno: message.previousSeqno })
      case 'opened':
        return log.info({ mode: message.mode }, 'reading the event ring')
      case 'failure':
        return this.#setFailure(message.failure)
      case 'progress':
        return this.#setPosition(message.position)
    }
  }

  #setFailure(failure: SourceFailure | undefined): void {
    this.failure = failure
    if (failure === undefined) return
    this.#deps.log.warn({ reason: failure.code, detail: failure.message }, 'the event ring cannot be read')
  }

  #setPosition(position: SourcePosition): void {
    this.position = position
    this.#deps.liveness.beat(position.recordedMs)
    this.#deps.metrics.publish.observe(Math.max(0, processTimeMs() - position.readMs) / 1000)
  }
}
