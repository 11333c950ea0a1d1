import assert from 'node:assert/strict'
import type { AccessService } from '../../../access/service.ts'
import { createSharedLimits, openSharedLimits } from '../../../gateway/limits.ts'
import { reapChildren } from '../../../platform/process/child.ts'
import type { ProcessMemoryGuard } from '../../../platform/process/memory-guard.ts'
import { createLogTap } from '../../../platform/telemetry/log-tap.ts'
import { createMergedMetrics, createThreadMetrics } from '../../../platform/telemetry/merged-metrics.ts'
import type { MetricsView } from '../../../platform/telemetry/metrics-view.ts'
import { MAIN_THREAD, threadSupervisionMetrics } from '../../../platform/telemetry/thread-supervision-metrics.ts'
import type { NodeStreamsMemory } from '../../../shreds/decoded/node-streams/follow-nodes.ts'
import type { NodesOptions } from '../../../upstreams/node-spec.ts'
import type { ProbePublisher } from '../../../upstreams/probes/shared-probes.ts'
import type { NodeStatus } from '../../../upstreams/status.ts'
import type { Config } from '../config/config.ts'
import type { Settings } from '../config/settings.ts'
import type { Rendered } from '../documents/documents.ts'
import type { ProcessContext } from '../process/open-process.ts'
import type { HealthReports } from './health-reports.ts'
import type { GatewayMethods } from './protocol.ts'
import type { ThreadReady } from './start-data.ts'
import { type SupervisedThread, startSupervisedThread } from './supervised-thread.ts'

/** The services that run in threads, and how many threads each has. */
export type ThreadPlan = readonly { readonly name: string; readonly threads: number; readonly isSingle?: boolean }[]

export type ThreadSpec = {
  /** As in the plan, with the number of the thread where the service has several. */
  readonly name: string
  readonly entry: URL
  /** The configuration of the next instance, which takes the ports of the one before. */
  config(started: Config, ready: ThreadReady | undefined): Config
  /** Reserves its ports before it is started again. */
  reserve?(): Promise<AsyncDisposable>
  readonly decodedOutput?: SharedArrayBuffer | undefined
  readonly decodedNodeStreams?: NodeStreamsMemory | undefined
  /** Of a gateway thread: what it may call in the control plane besides what every thread may. */
  readonly methods?: GatewayMethods
}

/** The threads of a process, and what its control plane does with all of them. */
export type ThreadHost = Disposable & {
  start(spec: ThreadSpec): Promise<SupervisedThread>
  /** In the order of the plan. */
  all(): readonly SupervisedThread[]
  /** The names of a service's threads in the plan. */
  namesOf(service: string): readonly string[]
  /** The nodes as each thread sees them, at most a second old. */
  nodes(): readonly (readonly NodeStatus[])[]
  /** The nodes and their options, as of the last reload. */
  nodesOptions(): NodesOptions
  refreshNodes(): Promise<void>
  reloadNodes(options: NodesOptions): Promise<void>
  drainNode(node: string, isDrained: boolean): void
  setLogLevel(level: string): void
  publishDocuments(rendered: Rendered): void
  /** The metrics of the process, over all threads. */
  readonly metrics: MetricsView
}

export type ThreadHostDeps = ProcessContext<never> & {
  readonly nodes: NodesOptions
  readonly access: AccessService
  readonly memory: ProcessMemoryGuard
  /** Of the nodes of the control plane. */
  readonly probes: ProbePublisher
  readonly health: HealthReports
  /** Of the memory guard. */
  readonly memoryCells: SharedArrayBuffer
}

/** A thread that is busy for longer does not delay a scrape. */
const REFRESH_MS = 200

/** Names of the threads in the order of their index; the control plane is the first. */
export function threadNames(plan: ThreadPlan): string[] {
  return [MAIN_THREAD, ...plan.flatMap(namesOf)]
}

/** Numbered where a service may have several. */
function namesOf({ name, threads, isSingle = false }: ThreadPlan[number]): string[] {
  return Array.from({ length: threads }, (_, at) => (isSingle ? name : `${name}-${at + 1}`))
}

export function createThreadHost(settings: Settings, plan: ThreadPlan, deps: ThreadHostDeps): ThreadHost {
  const { log } = deps
  const { access, memory, registry, probes, health } = deps
  const names = threadNames(plan)
  const limitMemory = createSharedLimits({ threads: names.length })
  const limits = openSharedLimits(limitMemory, 0)
  const metrics = new Map(names.slice(1).map((name) => [name, createThreadMetrics()]))
  const supervision = threadSupervisionMetrics(registry, names)
  const tap = deps.logTap ?? createLogTap({ write() {} })
  const threads: SupervisedThread[] = []
  const drained = new Set<string>()
  let { nodes } = deps
  let logLevel = log.level

  const merged = createMergedMetrics(registry, () => metrics.values())
  const watching = access.onChange(() => {
    forgetRemoved()
    const update = access.update()
    for (const thread of threads) thread.notify('access-update', update)
  })
  const probing = probes.onResult((key, result) => {
    for (const thread of threads) thread.notify('node-probed', { key, result })
  })

  /** A node that is added again under the same name is not drained, in no thread. */
  function forgetRemoved(): void {
    if (drained.size === 0) return
    const dedicated = [...access.snapshot().nodes()].filter(({ subscriptionId }) => subscriptionId !== null)
    const known = new Set([...nodes.nodes, ...dedicated].map(({ name }) => name))
    for (const name of drained) if (!known.has(name)) drained.delete(name)
  }

  return {
    metrics: {
      ...merged,
      // Values that a thread reads from its services are at most a second old, and at a scrape as of now.
      async text(...args) {
        await Promise.allSettled(threads.map((thread) => thread.call('refresh-metrics', undefined, REFRESH_MS)))
        return merged.text(...args)
      },
    },
    [Symbol.dispose]() {
      watching[Symbol.dispose]()
      probing[Symbol.dispose]()
    },
    async start({ name, entry, config, reserve, decodedOutput, decodedNodeStreams, methods }) {
      const index = names.indexOf(name)
      let startedWith = nodes
      const children = new Set<number>()
      const own = metrics.get(name)
      assert(own !== undefined, `${name} is in the plan`)
      const thread = await startSupervisedThread(
        {
          name,
          entry,
          reserve,
          start(ready) {
            startedWith = nodes
            return {
              name,
              index,
              settings: {
                config: withReloaded(config(settings.config, ready), nodes, logLevel),
                stateDir: settings.stateDir,
                loaded: { folder: settings.loaded.folder, file: settings.loaded.file },
              },
              nodes: nodes.nodes,
              access: access.startDataOf(index),
              limits: limitMemory,
              memory: deps.memoryCells,
              metrics: own.families,
              decodedOutput,
              decodedNodeStreams,
              drainedNodes: [...drained],
            }
          },
        },
        {
          ...deps,
          health,
          writeLog: (line) => tap.write(line),
          methods: { ...methods, 'node-health': probes.known },
          notifications: {
            metric: own.add,
            'bookings-requested': access.sendRequestedBookings,
            'probe-requested': probes.request,
            'child-started': (pid: number) => void children.add(pid),
            'child-ended': (pid: number) => void children.delete(pid),
          },
          onReady(channel) {
            supervision.setUp(name, true)
            channel.notify('access-update', access.update())
            channel.notify('log-level', logLevel)
            for (const node of drained) channel.notify('drain-node', { node, isDrained: true })
            if (nodes !== startedWith) void channel.call('reload-nodes', nodes).catch(ignore)
          },
          onRestart: () => supervision.restarted(name),
          async onEnd() {
            supervision.setUp(name, false)
            const released = access.threadEnded(index)
            limits.reclaim(index)
            memory.reclaim(index)
            own.ended()
            void reapChildren([...children], deps)
            children.clear()
            await released
          },
        },
      )
      // Started again after another thread of its service could not be started.
      const before = threads.findIndex((other) => other.name === name)
      threads.splice(before === -1 ? threads.length : before, 1, thread)
      return thread
    },
    all: () => threads.toSorted((a, b) => names.indexOf(a.name) - names.indexOf(b.name)),
    namesOf: (service) => plan.filter(({ name }) => name === service).flatMap(namesOf),
    nodes: () => threads.map((thread) => thread.nodes()),
    nodesOptions: () => nodes,
    refreshNodes: async () => void (await Promise.allSettled(threads.map((thread) => thread.refreshNodes()))),
    async reloadNodes(next) {
      nodes = next
      forgetRemoved()
      const reload = async (thread: SupervisedThread) => {
        try {
          await thread.reloadNodes(next)
        } catch (error) {
          // A thread that ended is started again with the nodes.
          if (thread.isRunning) throw error
        }
      }
      await Promise.all(threads.filter(({ isRunning }) => isRunning).map(reload))
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

/** The configuration of the start, with what a reload has applied since; the nodes themselves are passed beside it. */
function withReloaded(started: Config, nodes: NodesOptions, logLevel: string): Config {
  const { allowPrivate, dedicatedCredentialHeader } = nodes
  return {
    ...started,
    log: { level: logLevel as Config['log']['level'] },
    upstreams: { ...started.upstreams, allowPrivate, dedicatedCredentialHeader },
  }
}

/** A thread that ends during the call is started again with the nodes. */
function ignore(): void {}
