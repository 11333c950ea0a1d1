import type { Toxic } from '../faults/toxics.ts'
import { type Crowd, pause } from './crowd.ts'

/** One thing that goes wrong for a while. */
type Fault = { readonly name: string; run(crowd: Crowd): Promise<void> }

const toxic = (name: string, make: (random: Crowd['random']) => Toxic): Fault => ({
  name,
  async run({ service, random }) {
    const way = service.ways[random(service.ways.length)]
    const proxy = way?.[(['rpc', 'ws', 'grpc'] as const)[random(3)] ?? 'rpc']
    const added = proxy?.add(make(random))
    await pause(1000 + random(8000))
    added?.remove()
    proxy?.resetConnections()
  },
})

/** Rows of the fault list that a node, a network, an operator or a customer brings about while the service runs. */
const FAULTS: readonly Fault[] = [
  {
    name: 'F1 a node refuses',
    async run({ service, random }) {
      const way = service.ways[random(service.ways.length)]
      for (const proxy of Object.values(way ?? {})) await proxy.disable()
      await pause(500 + random(6000))
      for (const proxy of Object.values(way ?? {})) await proxy.enable()
    },
  },
  toxic('F2 a node is slow', (random) => ({ type: 'latency', latencyMs: 200 + random(1500), jitterMs: 200 })),
  {
    name: 'F3 a node flaps',
    async run({ service, random }) {
      const proxy = service.ways[random(service.ways.length)]?.rpc
      for (let turn = 0; turn < 6; turn++) {
        await proxy?.disable()
        await pause(500)
        await proxy?.enable()
        await pause(500)
      }
    },
  },
  toxic('F4 a connection stands still', () => ({ type: 'timeout', timeoutMs: 0 })),
  {
    name: 'F6 a node loses its WebSockets',
    async run({ service, random }) {
      service.ways[random(service.ways.length)]?.ws.resetConnections()
    },
  },
  toxic('F17 connections are reset', () => ({ type: 'reset_peer', timeoutMs: 20 })),
  toxic('a slow link', () => ({ type: 'slicer', averageSize: 40, sizeVariation: 30, delayMs: 2 })),
  { name: 'F18 a bad configuration', run: ({ service }) => service.reloadBadConfig() },
  { name: 'a token is rotated', run: ({ service }) => service.rotateToken() },
]

/** One fault after another, chosen by the seed, until it is over. Both nodes may be hit, but never both by the same fault. */
export async function runFaults(crowd: Crowd): Promise<void> {
  while (!crowd.isOver()) {
    const fault = FAULTS[crowd.random(FAULTS.length)] as Fault
    crowd.count(fault.name)
    await fault.run(crowd)
    await pause(500 + crowd.random(4000))
  }
}
