import { ServiceError } from '../../../core/error.ts'
import type { Localnet } from '../../../localnet/service.ts'
import type { NodesOptions } from '../../../upstreams/node-spec.ts'
import type { NodeChange } from '../../../upstreams/pool/members.ts'
import type { StartProbing } from '../../../upstreams/probes/shared-probes.ts'
import { startUpstreams, type Upstreams } from '../../../upstreams/service.ts'
import type { SlotLengthLearner } from '../../../upstreams/slot-length.ts'
import type { Config } from '../config/config.ts'
import type { Settings } from '../config/settings.ts'
import type { ControlMethodsOf } from '../process/control-protocol.ts'
import type { ServiceContext, ServiceSettings } from '../process/service-context.ts'
import type { ThreadHost } from '../threads/thread-host.ts'
import type { ThreadContext } from '../threads/thread-main.ts'
import { isChainEmbedded, nodesOf } from './embedded-chain.ts'
import { mergeNodeStatus } from './node-status.ts'

/** The pool of nodes that the configuration lists, or of these nodes instead. */
export function openUpstreams(
  { config, loaded }: ServiceSettings,
  {
    log,
    clock,
    random,
    registry,
    env,
    lifecycle,
    probing,
  }: ServiceContext<never> & { readonly probing?: StartProbing },
  nodes = config.upstreams.nodes,
  slotLength?: SlotLengthLearner,
): Promise<Upstreams> {
  return startUpstreams(
    { ...config.upstreams, nodes },
    { log, clock, random, registry, env, folder: loaded.folder, lifecycle, slotLength, probing },
  )
}

/** The pool of a thread. The control plane probes the nodes; what it knows of them is known here before the thread serves. */
export async function openThreadUpstreams({ probes, ...context }: ThreadContext<never>): Promise<Upstreams> {
  const upstreams = await openUpstreams(context.settings, { ...context, probing: probes.start }, context.start.nodes)
  await probes.settled()
  return upstreams
}

/** For a process that works on nodes and does not run the embedded chain. */
export function assertHasNode({ config }: Settings, command: string): void {
  if (config.upstreams.nodes.length > 0) return
  throw new ServiceError('config-invalid', `${command} needs an upstream node, and none is configured`, {
    fix: 'Add at least one to upstreams.nodes. The embedded chain runs only inside sluice serve.',
  })
}

/** Applies the nodes of a reloaded configuration in such a process. */
export function reloadListedNodes(
  command: string,
  reload: (options: NodesOptions) => Promise<readonly NodeChange[]>,
): (next: Settings) => Promise<readonly NodeChange[]> {
  return (next) => {
    assertHasNode(next, command)
    return reload(next.config.upstreams)
  }
}

/** The same in `serve`. The embedded chain starts and stops only with the process. */
export function reloadNodes(
  started: Config,
  upstreams: Upstreams,
  chain: Localnet | undefined,
  threads: Pick<ThreadHost, 'reloadNodes'>,
): (next: Settings) => Promise<NodeChange[]> | undefined {
  return ({ config: next }) =>
    isChainEmbedded(next) === isChainEmbedded(started)
      ? reloadAll({ ...next.upstreams, nodes: nodesOf(next, chain) }, upstreams, threads)
      : undefined
}

/** In the control plane first: it rejects what cannot be used, before any thread has changed. */
export async function reloadAll(
  options: NodesOptions,
  upstreams: Upstreams,
  threads: Pick<ThreadHost, 'reloadNodes'>,
): Promise<NodeChange[]> {
  const changes = await upstreams.reload(options)
  await threads.reloadNodes(options)
  return changes
}

/** What the operator sees of the nodes and does with them. */
export type OperatorUpstreams = Pick<Upstreams, 'status' | 'drain' | 'undrain' | 'shared'> & {
  /** Has `status` show what the threads see now. */
  refresh?(): Promise<void>
}

/** The nodes over all threads of the process. */
export function upstreamsOfThreads(
  own: Upstreams,
  threads: Pick<ThreadHost, 'nodes' | 'drainNode' | 'refreshNodes'>,
): OperatorUpstreams {
  return {
    refresh: threads.refreshNodes,
    shared: own.shared,
    status: () => mergeNodeStatus(own.status(), threads.nodes()),
    drain(node) {
      const isKnown = own.drain(node)
      if (isKnown) threads.drainNode(node, true)
      return isKnown
    },
    undrain(node) {
      const isKnown = own.undrain(node)
      if (isKnown) threads.drainNode(node, false)
      return isKnown
    },
  }
}

export function upstreamMethods(
  upstreams: OperatorUpstreams | undefined,
): ControlMethodsOf<'upstreams' | 'upstream-drain' | 'upstream-undrain'> {
  return {
    async upstreams() {
      await upstreams?.refresh?.()
      return upstreams?.status() ?? []
    },
    'upstream-drain': ({ name }) => ({ found: upstreams?.drain(name) ?? false }),
    'upstream-undrain': ({ name }) => ({ found: upstreams?.undrain(name) ?? false }),
  }
}
