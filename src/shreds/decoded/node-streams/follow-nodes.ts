import type { BaseDeps } from '../../../platform/process/base-deps.ts'
import type { MetricsRegistry } from '../../../platform/telemetry/metrics-registry.ts'
import { openInputWaker } from '../input-ring.ts'
import { openOutputWriter } from '../output-ring.ts'
import { followDeshred } from './deshred-stream.ts'
import type { FollowedStream, OpenStream } from './followed-stream.ts'

/** The memory between the thread that follows nodes and that of the engine. */
export type NodeStreamsMemory = {
  /** Memory of output-ring.ts, with records of records.ts. */
  readonly records: SharedArrayBuffer
  /** The engine waits on it. */
  readonly input: SharedArrayBuffer
}

export type FollowNodesDeps = BaseDeps & {
  readonly registry: MetricsRegistry
  openAt(node: string): OpenStream
}

/** Follows SubscribeDeshred of each of these nodes. */
export function followNodes(nodes: readonly string[], memory: NodeStreamsMemory, deps: FollowNodesDeps): Disposable {
  const streams: FollowedStream[] = []
  const metrics = upstreamStreamMetrics(deps.registry, () => streams.filter(({ isOpen }) => isOpen).length)
  using opening = new DisposableStack()
  const output = openOutputWriter(memory.records)
  const wake = openInputWaker(memory.input)
  const onInvalid = () => metrics.invalid.inc()
  for (const [source, name] of nodes.entries()) {
    const open = deps.openAt(name)
    streams.push(opening.use(followDeshred({ name, source }, { ...deps, open, output, wake, onInvalid })))
  }
  const opened = opening.move()
  return { [Symbol.dispose]: () => opened.dispose() }
}

export function upstreamStreamMetrics(registry: MetricsRegistry, open: () => number = () => 0) {
  registry.gauge('sluice_decoded_upstream_streams', "Open streams of nodes' own SubscribeDeshred.", {
    merge: 'sum',
    read: open,
  })
  const invalid = registry.counter(
    'sluice_decoded_upstream_invalid_total',
    "Messages of nodes' own SubscribeDeshred that are no transactions.",
  )
  return { invalid: invalid.with({}) }
}
