import assert from 'node:assert/strict'
import type { AccessService } from '../../../access/service.ts'
import { createSharedLimits, openSharedLimits } from '../../../gateway/limits.ts'
import type { ProcessMemoryGuard } from '../../../platform/process/memory-guard.ts'
import type { ChannelListeners, ChannelMethods } from '../../../platform/process/thread-channel.ts'
import { createLogTap } from '../../../platform/telemetry/log-tap.ts'
import { createMergedMetrics, createThreadMetrics } from '../../../platform/telemetry/merged-metrics.ts'
import type { MetricsView } from '../../../platform/telemetry/metrics-view.ts'
import { MAIN_THREAD, threadSupervisionMetrics } from '../../../platform/telemetry/thread-supervision-metrics.ts'
import type { NodesOptions } from '../../../upstreams/node-spec.ts'
import type { NodeStatus } from '../../../upstreams/status.ts'
import type { Config } from '../config/config.ts'
import type { Settings } from '../config/settings.ts'
import type { Rendered } from '../documents/documents.ts'
import type { ProcessContext } from '../process/open-process.ts'
import { createHealthReports } from './health-reports.ts'
import { type ServiceThread, startServiceThread } from './service-thread.ts'
import type { ThreadReady } from './start-data.ts'

/** The services that run in threads, and how many threads each has. */
export type ThreadPlan = readonly { readonly name: string; readonly threads: number; readonly isSingle?: boolean }[]

export type ThreadSpec = {
  /** As in the plan, with the number of the thread where the service has several. */
  readonly name: string
  readonly entry: URL
  /** The configuration of the next instance, which takes the ports of the one before. */
  config(started: Config, ready: ThreadReady | undefined): Config
  readonly methods?: ChannelMethods
  readonly listeners?: ChannelListeners
}

/** The threads of a process, and what its control plane does with all of them. */
export type Threads = Disposable & {
  start(spec: ThreadSpec): Promise<ServiceThread>
  all(): readonly ServiceThread[]
  /** The names of a service's threads in the plan. */
  namesOf(service: string): readonly string[]
  /** The nodes as each thread sees them. */
  nodes(): readonly (readonly NodeStatus[])[]
  reloadNodes(options: NodesOptions): Promise<void>
  drainNode(node: string, isDrained: boolean): void
  setLogLevel(level: string): void
  publishDocuments(rendered: Rendered): void
  /** The metrics of the process, over all threads. */
  readonly metrics: MetricsView
}

export type ThreadsDeps = ProcessContext<never> & {
  readonly nodes: NodesOptions
  readonly access: AccessService
  readonly memory: ProcessMemoryGuard
  /** Of the memory guard. */
  readonly memoryCells: SharedArrayBuffer
}

/** Names of the threads in the order of their index; the control plane is the first. */
export function threadNames(plan: ThreadPlan): string[] {
  return [MAIN_THREAD, ...plan.flatMap(namesOf)]
}

/** Numbered where a service may have several. */
function namesOf({ name, threads, isSingle = false }: ThreadPlan[number]): string[] {
  return Array.from({ length: threads }, (_, at) => (isSingle ? name : `${name}-${at + 1}`))
}

export function createThreads(settings: Settings, plan: ThreadPlan, deps: ThreadsDeps): Threads {
  const { log, lifecycle } = deps
  const { access, memory, registry } = deps
  const names = threadNames(plan)
  const limitMemory = createSharedLimits({ threads: names.length })
  const limits = openSharedLimits(limitMemory, 0)
  const metrics = new Map(names.slice(1).map((name) => [name, createThreadMetrics()]))
  const supervision = threadSupervisionMetrics(registry, names)
  const health = createHealthReports(lifecycle)
  const tap = deps.logTap ?? createLogTap({ write() {} })
  const threads: ServiceThread[] = []
  const drained = new Set<string>()
  let { nodes } = deps
  let logLevel = log.level

  const watching = access.onChange(() => {
    const update = access.update()
    for (const thread of threads) thread.notify('access-update', update)
  })

  return {
    metrics: createMergedMetrics(registry, () => metrics.values()),
    [Symbol.dispose]: () => watching[Symbol.dispose](),
    async start({ name, entry, config, methods, listeners }) {
      const index = names.indexOf(name)
      let startedWith = nodes
      const own = metrics.get(name)
      assert(own !== undefined, `${name} is in the plan`)
      const thread = await startServiceThread(
        {
          name,
          entry,
          start(ready) {
            startedWith = nodes
            return {
              name,
              index,
              settings: {
                config: { ...config(settings.config, ready), log: { level: logLevel as Config['log']['level'] } },
                stateDir: settings.stateDir,
                loaded: { folder: settings.loaded.folder, file: settings.loaded.file },
              },
              nodes: nodes.nodes,
              access: access.share(index),
              limits: limitMemory,
              memory: deps.memoryCells,
              metrics: own.families,
              drainedNodes: [...drained],
            }
          },
        },
        {
          ...deps,
          health,
          writeLog: (line) => tap.write(line),
          methods,
          listeners: { ...listeners, metric: own.add, 'book-requested': access.bookRequested },
          onReady(channel) {
            supervision.setUp(name, true)
            channel.notify('access-update', access.update())
            channel.notify('log-level', logLevel)
            for (const node of drained) channel.notify('drain-node', { node, isDrained: true })
            if (nodes !== startedWith) void channel.call('reload-nodes', nodes).catch(ignore)
          },
          onRestart: () => supervision.restarted(name),
          onEnd() {
            supervision.setUp(name, false)
            access.threadEnded(index)
            limits.reclaim(index)
            memory.reclaim(index)
            own.ended()
          },
        },
      )
      threads.push(thread)
      return thread
    },
    all: () => threads,
    namesOf: (service) => plan.filter(({ name }) => name === service).flatMap(namesOf),
    nodes: () => threads.map((thread) => thread.nodes()),
    async reloadNodes(next) {
      nodes = next
      await Promise.all(threads.filter(({ isRunning }) => isRunning).map((thread) => thread.reloadNodes(next)))
    },
    drainNode(node, isDrained) {
      if (isDrained) drained.add(node)
      else drained.delete(node)
      for (const thread of threads) thread.notify('drain-node', { node, isDrained })
    },
    setLogLevel(level) {
      logLevel = level
      for (const thread of threads) thread.notify('log-level', level)
    },
    publishDocuments(rendered) {
      for (const thread of threads) thread.publishDocuments(rendered)
    },
  }
}

/** A thread that ends during the call is started again with the nodes. */
function ignore(): void {}
