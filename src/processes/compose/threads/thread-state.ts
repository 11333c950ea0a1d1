import type { AccessService } from '../../../access/service.ts'
import type { NodesOptions } from '../../../upstreams/node-spec.ts'
import type { Config } from '../config/config.ts'
import type { ServiceChannel } from './protocol.ts'
import type { ThreadStart } from './start-data.ts'

/**
 * What the control plane changes in its threads while they run: nodes, drained nodes, log level and access. A thread that is started later, or again, gets
 * it here and nowhere else: the present state with its start data, and what has changed during its start when it serves.
 */
export type ThreadState = {
  /** As of the last reload. */
  readonly nodes: NodesOptions
  setNodes(next: NodesOptions): void
  setDrained(node: string, isDrained: boolean): void
  setLogLevel(level: string): void
  /** A node that is added again under the same name is not drained, in no thread. */
  forgetRemovedNodes(): void
  ofThread(): LateState
}

/** The state for the instances of one thread. */
export type LateState = {
  startData(config: Config): Pick<ThreadStart, 'nodes' | 'drainedNodes'> & { readonly config: Config }
  /** The instance serves. */
  replay(channel: Pick<ServiceChannel, 'notify' | 'call'>): void
}

export function createThreadState(
  started: { readonly nodes: NodesOptions; readonly logLevel: string },
  access: Pick<AccessService, 'snapshot' | 'update'>,
): ThreadState {
  const drained = new Set<string>()
  let { nodes, logLevel } = started

  function forgetRemovedNodes(): void {
    if (drained.size === 0) return
    const dedicated = [...access.snapshot().nodes()].filter(({ subscriptionId }) => subscriptionId !== null)
    const known = new Set([...nodes.nodes, ...dedicated].map(({ name }) => name))
    for (const name of drained) if (!known.has(name)) drained.delete(name)
  }

  return {
    get nodes() {
      return nodes
    },
    setNodes(next) {
      nodes = next
      forgetRemovedNodes()
    },
    setDrained(node, isDrained) {
      if (isDrained) drained.add(node)
      else drained.delete(node)
    },
    setLogLevel: (level) => void (logLevel = level),
    forgetRemovedNodes,
    ofThread() {
      let startedWith = nodes
      return {
        startData(config) {
          startedWith = nodes
          return { config: withReloaded(config, nodes, logLevel), nodes: nodes.nodes, drainedNodes: [...drained] }
        },
        replay(channel) {
          channel.notify('access-update', access.update())
          channel.notify('log-level', logLevel)
          for (const node of drained) channel.notify('drain-node', { node, isDrained: true })
          if (nodes !== startedWith) void channel.call('reload-nodes', nodes).catch(ignore)
        },
      }
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
