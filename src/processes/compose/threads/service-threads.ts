import type { Config } from '../config/config.ts'
import { servesExecution } from '../config/config.ts'
import { withPort } from '../config/listener.ts'
import { gatewayThreadCount } from '../services/gateway-threads.ts'
import type { ServiceThread } from './service-thread.ts'
import type { ThreadReady } from './start-data.ts'
import type { ThreadPlan, Threads } from './threads.ts'

/** The services with one thread each. */
const ENTRIES = {
  sender: new URL('../../threads/sender.ts', import.meta.url),
  execution: new URL('../../threads/execution.ts', import.meta.url),
  indexer: new URL('../../threads/indexer.ts', import.meta.url),
} as const

export type SingleService = keyof typeof ENTRIES

/** The threads of `sluice serve`. */
export function threadPlanOf(config: Config): ThreadPlan {
  const { sender, indexer } = config
  return [
    { name: 'gateway', threads: gatewayThreadCount(config) },
    { name: 'sender', threads: Number(sender.enabled) },
    { name: 'execution', threads: Number(servesExecution(config)) },
    { name: 'indexer', threads: Number(indexer.enabled) },
  ]
}

export function openServiceThread(name: SingleService, threads: Threads): Promise<ServiceThread> {
  return threads.start({ name, entry: ENTRIES[name], config: (config, ready) => onSamePort(name, config, ready) })
}

/** A restarted service listens where it did before, also where the system has chosen the port. */
function onSamePort(name: SingleService, config: Config, ready: ThreadReady | undefined): Config {
  const port = ready?.addresses[name]?.port
  return port === undefined ? config : { ...config, [name]: withPort(config[name], port) }
}
