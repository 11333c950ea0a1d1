import { performance } from 'node:perf_hooks'
import { blockPackets, oneLeader, openSink, type Sink, startRig } from './rig.ts'

/**
 * One side of the network namespace test. `relay` runs the service and feeds it; `sink` opens destinations. Commands over IPC:
 * `{ open: port }`, `{ close: port }`, `{ ask: true }`, `{ hold: true }` to stop feeding, `{ stop: true }`; replies with its counters.
 */
type Order = {
  readonly open?: number
  readonly close?: number
  readonly ask?: boolean
  readonly hold?: boolean
  readonly stop?: boolean
}

const [, , role, ...words] = process.argv
if (role === 'relay') await runRelay(words.map((word) => word.split(':') as [string, string]))
else await runSink(words[0] as string)

async function runRelay(destinations: [string, string][]): Promise<void> {
  using own = await openSink()
  const rig = await startRig(
    { destinations: { allowPrivate: true } },
    {
      leaders: oneLeader,
      setUp({ put }) {
        for (const [at, [ip, port]] of destinations.entries()) put(`sub_${at}`, { ip, port: Number(port), setAt: at })
        put('own', { port: own.port, setAt: 99 })
      },
    },
  )
  let isStopped = false
  let isHeld = false
  process.on('message', (order: Order) => {
    if (order.hold !== undefined) isHeld = order.hold
    if (order.ask === true || order.hold !== undefined) {
      const { destinations: served, counts } = rig.shreds.status()
      process.send?.({ served, relayed: counts.relayed, own: own.packets.length, atMs: performance.now() })
    }
    if (order.stop === true) isStopped = true
  })
  process.send?.({ ready: true })
  for (let slot = 1; !isStopped; ) {
    if (!isHeld) await rig.send(blockPackets(slot++))
    own.packets.splice(0, Math.max(0, own.packets.length - 1_000_000))
    await new Promise((resolve) => setTimeout(resolve, 40))
  }
  await rig[Symbol.asyncDispose]()
  process.disconnect?.()
}

async function runSink(host: string): Promise<void> {
  const open = new Map<number, Sink>()
  process.on('message', (order: Order) => {
    void (async () => {
      if (order.open !== undefined) open.set(order.open, await openSink(order.open, host))
      if (order.close !== undefined) {
        open.get(order.close)?.[Symbol.dispose]()
        open.delete(order.close)
      }
      if (order.stop === true) {
        for (const sink of open.values()) sink[Symbol.dispose]()
        process.disconnect?.()
        return
      }
      process.send?.({
        sinks: [...open].map(([port, { packets }]) => ({
          port,
          packets: packets.length,
          copies: packets.length - new Set(packets.map((packet) => packet.toString('latin1'))).size,
          sizes: [...new Set(packets.map(({ length }) => length))].toSorted((a, b) => a - b),
        })),
      })
    })()
  })
  process.send?.({ ready: true })
}
