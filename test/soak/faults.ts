import type { Toxic } from '../faults/toxics.ts'
import { pause, type SoakContext } from './client.ts'

/** A fault that lasts for a while. */
type Fault = { readonly name: string; run(context: SoakContext): Promise<void> }

const toxic = (name: string, make: (random: SoakContext['random']) => Toxic): Fault => ({
  name,
  async run({ service, random }) {
    const nodeProxies = service.proxies[random(service.proxies.length)]
    const proxy = nodeProxies?.[(['rpc', 'ws', 'grpc'] as const)[random(3)] ?? 'rpc']
    const added = proxy?.add(make(random))
    await pause(1000 + random(8000))
    added?.remove()
    proxy?.resetConnections()
  },
})

/** Rows of the fault list that a node, the network, an operator or a customer causes while the service runs. */
const FAULTS: readonly Fault[] = [
  {
    name: 'F1 a node refuses',
    async run({ service, random }) {
      const nodeProxies = service.proxies[random(service.proxies.length)]
      for (const proxy of Object.values(nodeProxies ?? {})) await proxy.disable()
      await pause(500 + random(6000))
      for (const proxy of Object.values(nodeProxies ?? {})) await proxy.enable()
    },
  },
  toxic('F2 a node is slow', (random) => ({ type: 'latency', latencyMs: 200 + random(1500), jitterMs: 200 })),
  {
    name: 'F3 a node flaps',
    async run({ service, random }) {
      const proxy = service.proxies[random(service.proxies.length)]?.rpc
      for (let repeat = 0; repeat < 6; repeat++) {
        await proxy?.disable()
        await pause(500)
        await proxy?.enable()
        await pause(500)
      }
    },
  },
  toxic('F4 a connection stalls', () => ({ type: 'timeout', timeoutMs: 0 })),
  {
    name: 'F6 a node loses its WebSockets',
    async run({ service, random }) {
      service.proxies[random(service.proxies.length)]?.ws.resetConnections()
    },
  },
  toxic('F17 connections are reset', () => ({ type: 'reset_peer', timeoutMs: 20 })),
  toxic('a slow link', () => ({ type: 'slicer', averageSize: 40, sizeVariation: 30, delayMs: 2 })),
  { name: 'F18 a bad configuration', run: ({ service }) => service.reloadBadConfig() },
  { name: 'a token is rotated', run: ({ service }) => service.rotateToken() },
]

/** Runs one fault after another, chosen by the seed, until the end. A fault affects one of the two nodes. */
export async function runFaults(context: SoakContext): Promise<void> {
  while (!context.isOver()) {
    const fault = FAULTS[context.random(FAULTS.length)] as Fault
    context.count(fault.name)
    await fault.run(context)
    await pause(500 + context.random(4000))
  }
}
