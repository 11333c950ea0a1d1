import { AVAILABLE_FILTERS } from '../../contract/stream-events.ts'
import { processTimeMs } from '../../platform/process/worker.ts'
import type { Views } from '../api/views.ts'
import type { ExecutionDeps, ExecutionSettings } from '../deps.ts'
import type { Source } from '../source/message.ts'
import { type HelloFacts, type HubCounts, StreamHub } from './hub.ts'
import { RESUME_BYTES } from './resume-buffer.ts'
import { createSeqCounter } from './seq-counter.ts'

export type OpenHubDeps = Pick<ExecutionDeps, 'clock' | 'log' | 'metrics' | 'history' | 'seqStore' | 'version'> & {
  readonly views: Views
  /** Called once there are clients. */
  readonly source: () => Source
}

/** The hub with the limits of the configuration; its snapshots come from the views, its raw events from the source. */
export function openHub(options: ExecutionSettings, deps: OpenHubDeps): StreamHub {
  const { clock, log, views } = deps
  const { resume, client } = options
  const onFault = (err: unknown) =>
    log.error({ err }, 'the sequence number of the stream cannot be kept on disk; it is tried again every 10 s')
  return new StreamHub(
    {
      buffer: { ...resume, bytesMax: resume.bytesMax ?? RESUME_BYTES, keepsDeflated: options.wsCompression },
      client,
      rules: { itemsMax: options.subscribeItemsMax, blocked: new Set(options.blockedEvents) },
      lingerMs: resume.eventsLingerMs,
    },
    {
      clock,
      seq: createSeqCounter({ store: deps.seqStore, nowMs: clock.nowMs, onFault }),
      defer: deferFlush,
      hello: () => helloFacts(options, deps),
      snapshot: (kind) => views.snapshot(kind),
      onRawEventSelection: (selection) => deps.source().selectRawEvents(selection),
      count: countsOf(deps),
    },
  )

  /** Flushes after all messages of this turn of the event loop were taken. */
  function deferFlush(run: () => void): void {
    setImmediate(() => {
      const startedMs = processTimeMs()
      run()
      deps.metrics.flush.observe((processTimeMs() - startedMs) / 1000)
    })
  }
}

function countsOf({ metrics, history }: Pick<OpenHubDeps, 'metrics' | 'history'>): HubCounts {
  return {
    published: (kind) => metrics.published.inc({ kind }),
    delivered: (frames) => metrics.delivered.inc(frames),
    dropped(frames) {
      metrics.dropped.inc(frames)
      history.framesDropped(frames)
    },
    joined: (how) => metrics.joined.inc({ how }),
    refused: (code) => metrics.subscribeRefused.inc({ code }),
    deflated(bytesBefore, bytesAfter) {
      metrics.deflatedFrom.inc(bytesBefore)
      metrics.deflatedTo.inc(bytesAfter)
    },
  }
}

function helloFacts({ resume, client, subscribeItemsMax }: ExecutionSettings, deps: OpenHubDeps): HelloFacts {
  const { kind, hasTimings, isSimulated } = deps.source()
  return {
    protocol_version: 1,
    server_version: deps.version,
    chain_id: deps.views.chainId,
    block_number: deps.views.blockNumber,
    available_filters: AVAILABLE_FILTERS,
    limits: {
      backfill_events: resume.entriesMax,
      buffer_per_client: client.framesMax,
      slow_off_limit: client.dropsMax,
      heartbeat_interval: Math.round(client.pingMs / 1000),
      heartbeat_timeout: Math.round((client.pingMs * client.pingsMissedMax) / 1000),
      max_subscribes: subscribeItemsMax,
    },
    source: { kind, timings: hasTimings, simulated: isSimulated },
  }
}
