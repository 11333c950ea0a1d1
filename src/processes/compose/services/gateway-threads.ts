import { availableParallelism } from 'node:os'
import { portOf } from '../../../contract/listen-address.ts'
import { isServiceError } from '../../../core/error.ts'
import { reservePort } from '../../../platform/net/reserve-port.ts'
import type { NodeStreamsMemory } from '../../../shreds/decoded/node-streams/follow-nodes.ts'
import type { Config } from '../config/config.ts'
import { listenerOf, withPort } from '../config/listener.ts'
import type { Settings } from '../config/settings.ts'
import type { ConnectionList, ControlMethodsOf, GatewayControlProtocol } from '../process/control-protocol.ts'
import type { AccountMethods } from '../threads/protocol.ts'
import type { Address } from '../threads/start-data.ts'
import type { SupervisedThread } from '../threads/supervised-thread.ts'
import type { ThreadHost, ThreadPlan } from '../threads/thread-host.ts'
import { CONNECTIONS_LISTED_MAX } from './service-methods.ts'

/** The gateway as its control plane sees it: several threads that serve the same ports. */
export type GatewayThreads = AsyncDisposable & {
  readonly rpc: Address
  readonly ws: Address
  readonly grpc: Address
  /** Undefined where it is not configured. */
  readonly entries: Address | undefined
  readonly methods: ControlMethodsOf<'connections' | 'connection-close'>
  beginLameDuck(): void
  drain(deadlineMs: number): Promise<void>
}

/** ShredStream Decoded, whose engine runs in this process. */
export type DecodedPart = {
  readonly output: SharedArrayBuffer
  /** For the thread that follows nodes, where the streams of nodes are merged. */
  readonly nodeStreams: NodeStreamsMemory | undefined
  report(): object | undefined
}

/** What the gateway threads ask their control plane for. */
export type GatewayParts = {
  readonly decoded?: DecodedPart | undefined
  /** The account endpoints and the account page. */
  readonly accountMethods: AccountMethods
}

const ATTEMPTS_MAX = 3
const ENTRY = new URL('../../threads/gateway.ts', import.meta.url)
/** Cores up to which one gateway thread is enough: the other services need the rest. */
const FEW_CORES = 2
/** A thread that does not reply is left out of a list after this time. */
const LIST_MS = 1000

/** Threads of the gateway: `bundle.workers`, or the cores of the machine without those that other services of the process use. */
export function gatewayPlan(
  { bundle: { workers } }: Pick<Config, 'bundle'>,
  { busyElsewhere = 0, cores = availableParallelism() } = {},
): ThreadPlan[number] {
  const auto = cores <= FEW_CORES ? 1 : Math.max(1, cores - busyElsewhere)
  return { name: 'gateway', threads: workers === 'auto' ? auto : workers }
}

/**
 * Starts the gateway threads. Their ports are reserved first, so that two processes never share one by accident. A port that the system has chosen may be
 * taken by a connection of another process before the threads listen; then another one is chosen.
 */
export async function openGatewayThreads(
  settings: Settings,
  threads: ThreadHost,
  parts: GatewayParts,
): Promise<GatewayThreads> {
  const isChosenBySystem = listenersOf(settings.config.bundle).some((option) => portOf(option.listen) === 0)
  for (let attempt = 1; ; attempt++) {
    try {
      return await openOnPorts(settings, threads, parts)
    } catch (error) {
      if (!isChosenBySystem || attempt === ATTEMPTS_MAX || !isServiceError(error, 'address-in-use')) throw error
    }
  }
}

function listenersOf({ rpc, ws, grpc, entries }: Config['bundle']): Config['bundle']['rpc'][] {
  return [rpc, ws, grpc, ...(entries.enabled ? [entries] : [])]
}

async function openOnPorts(
  settings: Settings,
  threads: ThreadHost,
  { decoded, accountMethods }: GatewayParts,
): Promise<GatewayThreads> {
  const { config, loaded } = settings
  // Held until the threads listen.
  await using reserving = new AsyncDisposableStack()
  const reserve = async <Option extends Config['bundle']['rpc']>(option: Option): Promise<Option> => {
    const { host, port } = listenerOf(option, loaded.folder)
    return withPort(option, reserving.use(await reservePort({ host, port })).port)
  }
  const names = threads.namesOf('gateway')
  const bundle = {
    ...config.bundle,
    workers: names.length,
    rpc: await reserve(config.bundle.rpc),
    ws: await reserve(config.bundle.ws),
    grpc: await reserve(config.bundle.grpc),
    entries: config.bundle.entries.enabled ? await reserve(config.bundle.entries) : config.bundle.entries,
  }

  const started: SupervisedThread[] = []
  const othersOf = (name: string) => started.filter((thread) => thread.name !== name && thread.isRunning)
  const ports = listenersOf(bundle).map((option) => listenerOf(option, loaded.folder))
  const reserveAgain = createPortReserve(ports)
  await using opening = new AsyncDisposableStack()
  const opened = await Promise.allSettled(
    names.map(async (name) => {
      const thread = await threads.start({
        name,
        entry: ENTRY,
        config: (current) => ({ ...current, bundle }),
        reserve: () => reserveAgain(() => othersOf(name).length === 0),
        decodedOutput: decoded?.output,
        methods: {
          ...accountMethods,
          'decoded-report': () => decoded?.report(),
          'connections-in-other-threads': async (subscription) =>
            (await gather(othersOf(name), 'connections-of', { subscription })).flat(),
          'close-in-other-threads': async (connection) =>
            (await gather(othersOf(name), 'close-connection-of', connection)).includes(true),
        },
      })
      opening.use(thread)
      started.push(thread)
    }),
  )
  for (const result of opened) if (result.status === 'rejected') throw result.reason
  const addressOf = (name: 'rpc' | 'ws' | 'grpc') => started[0]?.addresses[name] as Address
  const all = opening.move()
  return {
    rpc: addressOf('rpc'),
    ws: addressOf('ws'),
    grpc: addressOf('grpc'),
    entries: started[0]?.addresses['entries'],
    methods: connectionMethods(started),
    beginLameDuck() {
      for (const thread of started) thread.beginLameDuck()
    },
    async drain(deadlineMs) {
      await Promise.all(started.map((thread) => thread.drain(deadlineMs)))
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  }
}

/**
 * Reserves the ports again for a thread that is restarted, where no other thread listens on them: another process may have taken one meanwhile, and with
 * `reusePort` both would get a part of the connections. One thread after another, so that the second finds the first one listening.
 */
export function createPortReserve(
  ports: readonly { readonly host: string; readonly port: number }[],
): (isNeeded: () => boolean) => Promise<AsyncDisposable> {
  let last: Promise<void> = Promise.resolve()
  return async (isNeeded) => {
    await using opening = new AsyncDisposableStack()
    const before = last
    const turn = Promise.withResolvers<void>()
    last = turn.promise
    opening.defer(turn.resolve)
    await before
    if (isNeeded()) for (const { host, port } of ports) opening.use(await reservePort({ host, port }))
    const opened = opening.move()
    return { [Symbol.asyncDispose]: () => opened.disposeAsync() }
  }
}

/** What the operator does with the connections of all gateway threads. */
export function connectionMethods(
  threads: readonly CalledThread[],
): ControlMethodsOf<'connections' | 'connection-close'> {
  return {
    connections: async (filter) => mergeConnections(await gather(threads, 'connections', filter)),
    'connection-close': async (connection) => ({
      found: (await gather(threads, 'connection-close', connection)).some(({ found }) => found),
    }),
  }
}

type CalledThread = Pick<SupervisedThread, 'isRunning' | 'call'>

/** The oldest first, and the total. */
function mergeConnections(lists: readonly ConnectionList[]): ConnectionList {
  const connections = lists.flatMap((list) => list.connections)
  return {
    total: lists.reduce((sum, { total }) => sum + total, 0),
    connections: connections.sort((a, b) => (a.since < b.since ? -1 : 1)).slice(0, CONNECTIONS_LISTED_MAX),
  }
}

/** The results of the threads that reply. One that is being restarted has no connections. */
async function gather<Method extends keyof GatewayControlProtocol>(
  threads: readonly CalledThread[],
  method: Method,
  ...[params]: Parameters<GatewayControlProtocol[Method]>
): Promise<ReturnType<GatewayControlProtocol[Method]>[]> {
  type Result = ReturnType<GatewayControlProtocol[Method]>
  const results = await Promise.allSettled(
    threads
      .filter(({ isRunning }) => isRunning)
      .map((thread) => thread.call('control', { method, params }, LIST_MS) as Promise<Result>),
  )
  return results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
}
