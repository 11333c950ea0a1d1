import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../src/platform/process/test-wait.ts'

/**
 * Runs the relay in one network namespace and its destinations in another, connected by a veth pair. Skipped where the kernel refuses to create
 * namespaces.
 */
const NEAR = `slu-n-${process.pid}`
const FAR = `slu-f-${process.pid}`
const CHILD = join(import.meta.dirname, '../support/shreds/namespace-child.ts')
const DYING = 21_001
const STEADY = 21_002

const ip = (...words: string[]): void =>
  void execFileSync('ip', words, { stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' })

function makeNamespaces(): Disposable {
  const stack = new DisposableStack()
  for (const name of [NEAR, FAR]) {
    ip('netns', 'add', name)
    stack.defer(() => ip('netns', 'del', name))
  }
  ip('link', 'add', 'cable0', 'netns', NEAR, 'type', 'veth', 'peer', 'name', 'cable1', 'netns', FAR)
  for (const [name, link, address] of [
    [NEAR, 'cable0', '10.77.0.1/24'],
    [FAR, 'cable1', '10.77.0.2/24'],
  ] as const) {
    ip('-n', name, 'addr', 'add', address, 'dev', link)
    ip('-n', name, 'link', 'set', link, 'up')
    ip('-n', name, 'link', 'set', 'lo', 'up')
  }
  return stack
}

function tryNamespaces(): (Disposable & { refused?: undefined }) | { refused: string } {
  try {
    return Object.assign(makeNamespaces(), {})
  } catch (error) {
    for (const name of [NEAR, FAR]) {
      try {
        ip('netns', 'del', name)
      } catch {
        // It was not made.
      }
    }
    return { refused: (error as { stderr?: string }).stderr?.trim() ?? String(error) }
  }
}

type RelayResponse = {
  served: { subscriptionId: string; state: string; packets: number; unsent: number; lastFault: string | null }[]
  relayed: number
  own: number
  atMs: number
}
type SinkResponse = { sinks: { port: number; packets: number; copies: number; sizes: number[] }[] }

async function startIn(namespace: string, ...words: string[]) {
  const child: ChildProcess = spawn('ip', ['netns', 'exec', namespace, process.execPath, CHILD, ...words], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const ended = once(child, 'exit')
  await once(child, 'message', { signal: AbortSignal.timeout(30_000) })
  return {
    async ask<Response>(order: object): Promise<Response> {
      const responded = once(child, 'message', { signal: AbortSignal.timeout(10_000) })
      child.send(order)
      return (await responded)[0] as Response
    },
    async [Symbol.asyncDispose]() {
      if (child.connected) child.send({ stop: true })
      const given = await Promise.race([ended, pause(5000, 'late', { ref: false })])
      if (given === 'late') child.kill('SIGKILL')
      await ended
    },
  }
}

test('a destination closes, reopens, and its path gets a smaller MTU; the others keep their rate', async (t) => {
  const made = tryNamespaces()
  if (made.refused !== undefined) {
    t.skip(`SKIPPED: network namespaces cannot be made here: ${made.refused}`)
    return
  }
  using _namespaces = made
  await using far = await startIn(FAR, 'sink', '10.77.0.2')
  await far.ask({ open: DYING })
  await far.ask({ open: STEADY })
  await using relay = await startIn(NEAR, 'relay', `10.77.0.2:${DYING}`, `10.77.0.2:${STEADY}`)

  const look = () => relay.ask<RelayResponse>({ ask: true })
  const packetsAt = async (port: number) =>
    (await far.ask<SinkResponse>({})).sinks.find((sink) => sink.port === port)?.packets ?? 0
  const dying = async () => (await look()).served.find(({ subscriptionId }) => subscriptionId === 'sub_0')
  /** The share of the packets relayed during `during` that one destination got; packets in flight make it inexact. */
  async function shareOf(count: () => Promise<number>, during: () => Promise<void>): Promise<number> {
    const [relayed, got] = [(await look()).relayed, await count()]
    await during()
    return ((await count()) - got) / ((await look()).relayed - relayed)
  }
  const enough = async () => {
    const { relayed } = await look()
    await until('many more were relayed', async () => (await look()).relayed > relayed + 2000, 60_000)
  }
  const isAll = (share: number) => share > 0.75 && share < 1.25

  await until('both get shreds', async () => (await packetsAt(DYING)) > 500 && (await packetsAt(STEADY)) > 500, 20_000)

  await t.test('pauses the closed destination; the other gets all packets', async () => {
    const share = await shareOf(
      () => packetsAt(STEADY),
      async () => {
        await far.ask({ close: DYING })
        await until('it is paused', async () => (await dying())?.state === 'paused', 20_000)
        await enough()
      },
    )
    assert.ok(isAll(share), `the steady one got ${share} of what was relayed`)
    assert.equal((await dying())?.lastFault, 'refused')
  })

  await t.test('serves the reopened destination again', async () => {
    await far.ask({ open: DYING })
    await until('it gets shreds', async () => (await packetsAt(DYING)) > 500, 40_000)
  })

  await t.test('with an MTU smaller than a shred, complete shreds still arrive, each once', async () => {
    ip('-n', NEAR, 'link', 'set', 'cable0', 'mtu', '1000')
    ip('-n', FAR, 'link', 'set', 'cable1', 'mtu', '1000')
    const share = await shareOf(() => packetsAt(STEADY), enough)
    assert.ok(isAll(share), `it got ${share} of what was relayed`)
    ip('-n', NEAR, 'link', 'set', 'cable0', 'mtu', '1500')
    ip('-n', FAR, 'link', 'set', 'cable1', 'mtu', '1500')
    await enough()
    await relay.ask({ hold: true })
    try {
      const sent = (await look()).served.find(({ subscriptionId }) => subscriptionId === 'sub_1')
      assert.equal(sent?.unsent, 0)
      // Allows some loss: a receiver that gets no CPU for seconds drops packets.
      await until('the packets have arrived', async () => (await packetsAt(STEADY)) > 0.95 * (sent?.packets ?? 0))
      const steady = (await far.ask<SinkResponse>({})).sinks.find(({ port }) => port === STEADY)
      assert.deepEqual([steady?.copies, steady?.sizes], [0, [1203, 1228]])
    } finally {
      await relay.ask({ hold: false })
    }
  })

  await t.test(
    'with the link down, a local destination gets all packets, and the remote ones continue when it is up again',
    async () => {
      const share = await shareOf(
        async () => (await look()).own,
        async () => {
          ip('-n', FAR, 'link', 'set', 'cable1', 'down')
          await enough()
        },
      )
      assert.ok(isAll(share), `it got ${share} of what was relayed`)
      ip('-n', FAR, 'link', 'set', 'cable1', 'up')
      const before = await packetsAt(STEADY)
      await until('the far one gets shreds again', async () => (await packetsAt(STEADY)) > before + 500, 60_000)
    },
  )
})
