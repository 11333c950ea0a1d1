import assert from 'node:assert/strict'
import type { Access } from '../../../src/access/call-access.ts'
import type { StatusRecord } from '../../../src/contract/execution-routes.ts'
import { type Clock, createManualClock } from '../../../src/core/clock.ts'
import { createSeededRandom } from '../../../src/core/random.ts'
import type { ExecutionDeps, ExecutionSettings } from '../../../src/execution/deps.ts'
import { History } from '../../../src/execution/history/history.ts'
import { executionMetrics } from '../../../src/execution/metrics.ts'
import { executionOptions } from '../../../src/execution/options.ts'
import { type Execution, startExecution } from '../../../src/execution/service.ts'
import { type LastEvent, type LastEventStore, openLastEvent } from '../../../src/execution/source/last-event.ts'
import { SILENT_MS } from '../../../src/execution/source/liveness.ts'
import { NO_STATS, type Source, type SourceMessage } from '../../../src/execution/source/message.ts'
import type { SeqStore } from '../../../src/execution/stream/seq-counter.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry, type MetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'

/** A source that reports what a test passes to it. */
export type ScriptedSource = {
  report(...messages: SourceMessage[]): void
  /** A sign of life with nothing else. */
  beat(): void
  readonly wanted: readonly string[]
}

export type TestExecution = AsyncDisposable & {
  readonly execution: Execution
  readonly source: ScriptedSource
  readonly registry: MetricsRegistry
  readonly http: string
  readonly ws: string
}

export type TestExecutionOptions = {
  readonly settings?: Partial<ExecutionSettings>
  readonly deps?: Partial<ExecutionDeps>
  readonly clock?: Clock
  readonly isSimulated?: boolean
}

export function executionSettings(given: Partial<ExecutionSettings> = {}): ExecutionSettings {
  const { listen: _listen, tls: _tls, plaintext: _plaintext, ...options } = executionOptions.parse({})
  return { ...options, listen: { host: '127.0.0.1', port: 0 }, ...given }
}

/** A store in memory that outlives the service, as the file does. */
export function createSeqMemory(): SeqStore {
  let kept: number | undefined
  return {
    read: () => kept,
    write(limit) {
      kept = limit
    },
  }
}

/** The time of the last event, kept in memory. */
export function createLastEvent(clock: Clock, kept?: number): LastEvent {
  const store: LastEventStore = { read: () => kept, replace: async (unixMs) => void (kept = unixMs) }
  return openLastEvent({ clock, store, unknownAgeMs: SILENT_MS, onFault: (error) => assert.fail(String(error)) })
}

/** The whole service on a port of its own, over a source that the test controls. */
export async function startTestExecution(given: TestExecutionOptions = {}): Promise<TestExecution> {
  const registry = createMetricsRegistry()
  let onMessages: (messages: SourceMessage[]) => void = () => {}
  let wanted: readonly string[] = []
  let seqno = 0
  const clock = given.clock ?? createManualClock()
  const scripted: ScriptedSource = {
    report: (...messages) => onMessages(messages),
    beat: () =>
      scripted.report({ kind: 'progress', position: { seqno: ++seqno, lagEvents: 0, readMs: 0, stats: NO_STATS } }),
    get wanted() {
      return wanted
    },
  }
  const lastEvent = given.deps?.lastEvent ?? createLastEvent(clock)
  const execution = await startExecution(executionSettings(given.settings), {
    log: silentLogger,
    clock,
    random: createSeededRandom(1),
    version: '0.0.0-test',
    registry,
    metrics: executionMetrics(registry),
    access: undefined as unknown as Access,
    seqStore: createSeqMemory(),
    lastEvent,
    history: await History.open(
      { blocksMax: 512, files: undefined },
      { clock, log: silentLogger, eventAgeMs: () => lastEvent.ageMs },
    ),
    lifecycle: { degraded() {}, recovered() {} },
    onRefused: () => {},
    onNotAfter: () => {},
    startSource(listener): Source {
      onMessages = listener
      return {
        kind: 'ring',
        hasTimings: true,
        isSimulated: given.isSimulated ?? false,
        selectRawEvents({ names, version }) {
          wanted = names
          // Answered at once, as a source without a block open does.
          listener([{ kind: 'raw-events-active', names: [...names], version }])
        },
        [Symbol.asyncDispose]: async () => {},
      }
    },
    ...given.deps,
  })
  const { port } = execution.address
  return {
    execution,
    source: scripted,
    registry,
    http: `http://127.0.0.1:${port}`,
    ws: `ws://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      await execution[Symbol.asyncDispose]()
      registry[Symbol.dispose]()
    },
  }
}

export const reportTps = (value: number): SourceMessage => ({ kind: 'tps', tps: value, blockNumber: value })

/** Raw events, half of them of a kind that is blocked by default. */
export function rawEvents(count: number, from = 0): SourceMessage {
  return {
    kind: 'events',
    events: Array.from({ length: count }, (_, at) => {
      const name = (from + at) % 2 === 0 ? 'TxnLog' : 'StorageAccess'
      return { name, json: JSON.stringify({ event_name: name, n: from + at }), fields: {}, header: undefined }
    }),
  }
}

export async function getJson(service: TestExecution, path: string): Promise<{ status: number; json: unknown }> {
  const response = await fetch(`${service.http}${path}`)
  return { status: response.status, json: await response.json() }
}

export async function statusOf(service: TestExecution): Promise<StatusRecord> {
  return (await getJson(service, '/v1/status')).json as StatusRecord
}
