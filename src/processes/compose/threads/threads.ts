import type { ChannelListeners, ChannelMethods } from '../../../platform/process/thread-channel.ts'
import { createLogTap } from '../../../platform/telemetry/log-tap.ts'
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
export type ThreadPlan = readonly { readonly name: string; readonly threads: number }[]

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
export type Threads = {
  start(spec: ThreadSpec): Promise<ServiceThread>
  all(): readonly ServiceThread[]
  /** The nodes as each thread sees them. */
  nodes(): readonly (readonly NodeStatus[])[]
  reloadNodes(options: NodesOptions): Promise<void>
  drainNode(node: string, isDrained: boolean): void
  setLogLevel(level: string): void
  publishDocuments(rendered: Rendered): void
}

export type ThreadsDeps = ProcessContext<never> & { readonly nodes: NodesOptions }

/** Names of the threads in the order of their index; the control plane is the first. */
export function threadNames(plan: ThreadPlan): string[] {
  const named = plan.flatMap(({ name, threads }) =>
    threads === 1 && name !== 'gateway' ? [name] : Array.from({ length: threads }, (_, at) => `${name}-${at + 1}`),
  )
  return ['main', ...named]
}

export function createThreads(settings: Settings, plan: ThreadPlan, deps: ThreadsDeps): Threads {
  const { log, lifecycle } = deps
  const names = threadNames(plan)
  const health = createHealthReports(lifecycle)
  const tap = deps.logTap ?? createLogTap({ write() {} })
  const threads: ServiceThread[] = []
  const drained = new Set<string>()
  let { nodes } = deps
  let logLevel = log.level

  return {
    async start({ name, entry, config, methods, listeners }) {
      const index = names.indexOf(name)
      const thread = await startServiceThread(
        {
          name,
          entry,
          start: (ready) => ({
            name,
            index,
            settings: {
              config: { ...config(settings.config, ready), log: { level: logLevel as Config['log']['level'] } },
              stateDir: settings.stateDir,
              loaded: { folder: settings.loaded.folder, file: settings.loaded.file },
            },
            nodes: nodes.nodes,
            drainedNodes: [...drained],
          }),
        },
        { ...deps, health, writeLog: (line) => tap.write(line), methods, listeners },
      )
      threads.push(thread)
      return thread
    },
    all: () => threads,
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
