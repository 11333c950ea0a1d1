import type { NodeStreamsMemory } from '../../../shreds/decoded/node-streams/follow-nodes.ts'
import type { Config } from '../config/config.ts'
import { withPort } from '../config/listener.ts'
import { servesExecution } from '../config/served.ts'
import type { Settings } from '../config/settings.ts'
import { type GatewayParts, type GatewayThreads, gatewayPlan, openGatewayThreads } from '../services/gateway-threads.ts'
import { mergesNodes } from '../services/shreds.ts'
import type { ThreadReady } from './start-data.ts'
import type { SupervisedThread } from './supervised-thread.ts'
import type { ThreadHost, ThreadPlan } from './thread-host.ts'

/** The services with one thread each. */
const ENTRIES = {
  sender: new URL('../../threads/sender.ts', import.meta.url),
  execution: new URL('../../threads/execution.ts', import.meta.url),
  indexer: new URL('../../threads/indexer.ts', import.meta.url),
  'decoded-nodes': new URL('../../threads/decoded-nodes.ts', import.meta.url),
} as const

type SingleService = Exclude<keyof typeof ENTRIES, 'decoded-nodes'>

/** The threads of `sluice serve`. */
export function threadPlanOf(config: Config): ThreadPlan {
  const { sender, indexer, shreds } = config
  // The control plane with the smaller services, the relay, and the stream to the clients of the execution service.
  const busyElsewhere = 1 + Number(shreds.enabled) + Number(servesExecution(config))
  return [
    gatewayPlan(config, { busyElsewhere }),
    { name: 'sender', threads: Number(sender.enabled), isSingle: true },
    { name: 'execution', threads: Number(servesExecution(config)), isSingle: true },
    { name: 'indexer', threads: Number(indexer.enabled), isSingle: true },
    { name: 'decoded-nodes', threads: Number(mergesNodes(config)), isSingle: true },
  ]
}

/** The services of `sluice serve` in their threads; undefined for those that do not run. */
export type Services = AsyncDisposable & {
  readonly gateway: GatewayThreads
  readonly sender: SupervisedThread | undefined
  readonly execution: SupervisedThread | undefined
  readonly indexer: SupervisedThread | undefined
}

/** Starts all at the same time: each loads its own code. Closed in reverse, also where one of them cannot be started. */
export async function startServices(
  settings: Settings,
  threads: ThreadHost,
  gatewayParts: GatewayParts,
): Promise<Services> {
  const { config } = settings
  await using opening = new AsyncDisposableStack()
  const openIf = async (isEnabled: boolean, name: SingleService) =>
    isEnabled ? startService(name, threads) : undefined
  const starting = [
    openGatewayThreads(settings, threads, gatewayParts),
    openIf(config.sender.enabled, 'sender'),
    openIf(servesExecution(config), 'execution'),
    openIf(config.indexer.enabled, 'indexer'),
    openDecodedNodes(threads, gatewayParts.decoded?.nodeStreams),
  ] as const
  for (const result of await Promise.allSettled(starting)) {
    if (result.status === 'fulfilled' && result.value !== undefined) opening.use(result.value)
  }
  const [gateway, sender, execution, indexer] = await Promise.all(starting)
  const opened = opening.move()
  return { gateway, sender, execution, indexer, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

/** Follows the decoded streams of nodes, where they are merged. */
async function openDecodedNodes(
  threads: ThreadHost,
  decodedNodeStreams: NodeStreamsMemory | undefined,
): Promise<SupervisedThread | undefined> {
  const name = 'decoded-nodes'
  if (decodedNodeStreams === undefined) return undefined
  return threads.start({ name, entry: ENTRIES[name], config: (config) => config, decodedNodeStreams })
}

function startService(name: SingleService, threads: ThreadHost): Promise<SupervisedThread> {
  return threads.start({ name, entry: ENTRIES[name], config: (config, ready) => onSamePort(name, config, ready) })
}

/** A restarted service listens where it did before, also where the system has chosen the port. */
function onSamePort(name: SingleService, config: Config, ready: ThreadReady | undefined): Config {
  const port = ready?.addresses[name]?.port
  return port === undefined ? config : { ...config, [name]: withPort(config[name], port) }
}
