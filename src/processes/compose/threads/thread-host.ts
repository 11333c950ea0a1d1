import { reapChildren } from '../../../platform/process/child.ts'
import { createLogTap } from '../../../platform/telemetry/log-tap.ts'
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
import { createThreadMemory, type ThreadMemoryDeps } from './thread-memory.ts'
import { createThreadState } from './thread-state.ts'

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
  /** What a gateway thread may call in the control plane besides what every thread may. */
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

export type ThreadHostDeps = ProcessContext<never> &
  ThreadMemoryDeps & {
    readonly nodes: NodesOptions
    /** State of the nodes, which the control plane checks. */
    readonly probes: ProbePublisher
    readonly health: HealthReports
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
  const { access, registry, probes, log } = deps
  const names = threadNames(plan)
  const memory = createThreadMemory(names, deps)
  const state = createThreadState({ nodes: deps.nodes, logLevel: log.level }, access)
  const supervision = threadSupervisionMetrics(registry, names)
  const tap = deps.logTap ?? createLogTap({ write() {} })
  const threads: SupervisedThread[] = []
  const notifyAll: SupervisedThread['notify'] = (notification, ...value) => {
    for (const thread of threads) thread.notify(notification, ...value)
  }

  const watching = access.onChange(() => {
    state.forgetRemovedNodes()
    notifyAll('access-update', access.update())
  })
  const probing = probes.onResult((key, result) => notifyAll('node-probed', { key, result }))

  return {
    metrics: {
      ...memory.metrics,
      // Values that a thread reads from its services are at most a second old, and at a scrape as of now.
      async text(...args) {
        await Promise.allSettled(threads.map((thread) => thread.call('refresh-metrics', undefined, REFRESH_MS)))
        return memory.metrics.text(...args)
      },
    },
    [Symbol.dispose]() {
      watching[Symbol.dispose]()
      probing[Symbol.dispose]()
    },
    async start({ name, entry, config, reserve, decodedOutput, decodedNodeStreams, methods }) {
      const own = memory.of(name)
      const late = state.ofThread()
      const children = new Set<number>()
      const thread = await startSupervisedThread(
        {
          name,
          entry,
          reserve,
          start(ready) {
            const { config: current, ...nodes } = late.startData(config(settings.config, ready))
            const { stateDir, loaded } = settings
            return {
              ...{ name, ...own.startData(), ...nodes, decodedOutput, decodedNodeStreams },
              settings: { config: current, stateDir, loaded: { folder: loaded.folder, file: loaded.file } },
            }
          },
        },
        {
          ...deps,
          writeLog: (line) => tap.write(line),
          methods: { ...methods, 'node-health': probes.known },
          notifications: {
            metric: own.addMetric,
            'bookings-requested': access.sendRequestedBookings,
            'probe-requested': probes.request,
            'child-started': (pid: number) => void children.add(pid),
            'child-ended': (pid: number) => void children.delete(pid),
          },
          onReady(channel) {
            supervision.setUp(name, true)
            late.replay(channel)
          },
          onRestart: () => supervision.restarted(name),
          async onEnd() {
            supervision.setUp(name, false)
            const released = own.reclaim()
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
    nodesOptions: () => state.nodes,
    refreshNodes: async () => void (await Promise.allSettled(threads.map((thread) => thread.refreshNodes()))),
    async reloadNodes(next) {
      state.setNodes(next)
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
      state.setDrained(node, isDrained)
      notifyAll('drain-node', { node, isDrained })
    },
    setLogLevel(level) {
      state.setLogLevel(level)
      notifyAll('log-level', level)
    },
    publishDocuments(rendered) {
      for (const thread of threads) thread.publishDocuments(rendered)
    },
  }
}
