import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { rotateToken } from '../../src/access/provisioning/tokens.ts'
import { compileTerms } from '../../src/access/terms.ts'
import { rpcMethod } from '../../src/contract/rpc-methods.ts'
import { createSeededRandom } from '../../src/core/random.ts'
import type { GrpcCall } from '../../src/host/grpc-call.ts'
import { serveUnary } from '../../src/host/grpc-unary.ts'
import { until } from '../../src/host/test-wait.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { SUBSCRIBE } from '../support/grpc-gateway.ts'
import { isFull, seedOf } from '../support/property.ts'
import { startRedis } from '../support/redis.ts'
import { runCaller, type StormTarget } from './storm.ts'
import { STORM_PLANS } from './storm-plan.ts'

const CHILD = new URL('storm-gateway.ts', import.meta.url).pathname
const STORM_MS = isFull ? 30_000 : 4000
const CALLERS = isFull ? 12 : 6
/** Three units were seen once in some thirty runs, beside other tests: 884 forwarded, 881 charged. */
const REPEATED_UNITS_MAX = 6

/** A node that knows what everything forwarded to it costs, and when it came. */
async function startCountingNode() {
  const node = await startFakeNode()
  const spent: { atMs: number; units: number }[] = []
  const count = (units: number) => void spent.push({ atMs: performance.now(), units })
  node.answer = (method) => {
    count(rpcMethod(method).cost)
    return { result: '0' }
  }
  node.onGrpcCall = (call: GrpcCall) => {
    count(1)
    if (call.path !== SUBSCRIBE) return serveUnary(call, (message) => ({ ok: true, message }))
    call.sendHeaders()
    let requests = 0
    call.onMessage((message) => {
      // The opening has paid for the first.
      if (++requests > 1) count(1)
      call.send(message)
    })
  }
  const subscribed = () => node.texts.filter((text) => text.includes('"logsSubscribe"')).length
  return {
    node,
    /** All units that came, WebSocket subscriptions included. */
    units: () => spent.reduce((sum, { units }) => sum + units, 0) + subscribed(),
    /** The most that came within so long. */
    most(withinMs: number): number {
      let most = 0
      for (const { atMs: endMs } of spent) {
        const inside = spent.filter(({ atMs }) => atMs > endMs - withinMs && atMs <= endMs)
        most = Math.max(
          most,
          inside.reduce((sum, { units }) => sum + units, 0),
        )
      }
      return most
    },
  }
}

type Member = { readonly child: ChildProcess; readonly at: StormTarget; readonly ended: Promise<unknown> }

async function startMember(folder: string, redis: string, { rpc, ws, grpc }: FakeNode): Promise<Member> {
  const child = spawn(process.execPath, [CHILD, folder, redis, JSON.stringify({ name: 'n', rpc, ws, grpc })], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const { value } = await lines.next()
  return { child, at: JSON.parse(String(value)) as StormTarget, ended }
}

/** Two gateway processes, each before a node of its own, on one store and one Redis. */
async function startPair() {
  await using opening = new AsyncDisposableStack()
  const redis = opening.use(await startRedis())
  const nodes = [await startCountingNode(), await startCountingNode()] as const
  for (const { node } of nodes) opening.use(node)
  // Provisions and reads the ledger; serves nobody.
  const home = opening.use(await startGateway([], STORM_PLANS))
  const members = [
    await startMember(home.folder, redis.url, nodes[0].node),
    await startMember(home.folder, redis.url, nodes[1].node),
  ] as const
  for (const { child, ended } of members) {
    opening.defer(async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await ended
    })
  }
  const opened = opening.move()
  return { nodes, home, members, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}

async function chargedTo(home: Gateway, subscriptionId: string): Promise<number> {
  const rows = await home.on.store.usage({ subscriptionId })
  return rows.reduce((sum, { units }) => sum + units, 0)
}

describe('T13: nobody gets round the quota', () => {
  test('T13: one budget over three interfaces, many sockets and two processes: nothing is charged that was not forwarded, and hardly anything forwarded that was not charged', async (t) => {
    const seed = seedOf(t)
    await using pair = await startPair()
    const { home, members, nodes } = pair
    const subscription = await home.subscribe({ plan: 'storm' })
    let { token } = subscription
    let isOver = false
    const outcomes = new Map<string, number>()
    await until('both follow the store', async () => {
      const asked = await Promise.all(
        members.map(({ at }) => fetch(`${at.url}/v1/whoami`, { headers: { 'x-token': token } })),
      )
      return asked.every(({ ok }) => ok)
    })
    const fromMs = performance.now()
    const callers = Array.from({ length: CALLERS }, (_, at) =>
      runCaller((members[at % 2] as Member).at, {
        random: createSeededRandom(seed + at),
        token: () => token,
        isOver: () => isOver,
        outcomes,
      }),
    )
    // Rotations with and without overlap, while all callers go on.
    const rotations = createSeededRandom(seed - 1)
    while (performance.now() - fromMs < STORM_MS) {
      await pause(700)
      const graceMs = rotations.float() < 0.5 ? 0 : 3_600_000
      const rotated = await rotateToken({ ...home.on, nowMs: Date.now() }, { subscription: subscription.id, graceMs })
      token = rotated.secret
    }
    isOver = true
    await Promise.all(callers)
    const seconds = (performance.now() - fromMs) / 1000
    // What was under way may still be charged or forwarded; a clean end waits for both.
    for (const { child } of members) child.kill('SIGTERM')
    await Promise.all(members.map(({ ended }) => ended))

    const forwarded = nodes[0].units() + nodes[1].units()
    const charged = await chargedTo(home, subscription.id)
    t.diagnostic(`${forwarded} units forwarded, ${charged} charged in ${seconds.toFixed(1)} s`)
    t.diagnostic([...outcomes].map(([name, count]) => `${name}: ${count}`).join(', '))
    assert.ok(charged <= forwarded, 'nothing is charged that was not forwarded')
    // Equal in nearly all runs. Why one was not is not known; a read that was sent again would explain it.
    assert.ok(forwarded - charged <= REPEATED_UNITS_MAX, `${forwarded - charged} units were forwarded and not charged`)
    const { buckets, unitsBucket } = compileTerms(STORM_PLANS['storm'] as never)
    const units = buckets[unitsBucket]
    assert.ok(units !== undefined)
    const budget = units.capacity + units.perSecond * seconds + 2 * units.chunk
    assert.ok(forwarded <= budget, `${forwarded} units of a budget of ${budget}`)
    assert.ok(forwarded > units.capacity, 'the storm met the limit')
    for (const { units: own } of nodes) assert.ok(own() > 50, 'both took part')
  })

  test('T13: a process that is killed forgets at most a second of what it forwarded', async (t) => {
    const seed = seedOf(t)
    await using pair = await startPair()
    const { home, members, nodes } = pair
    const { token, id } = await home.subscribe({ plan: 'storm', overrides: { unitsPerSecond: null } })
    let isOver = false
    const outcomes = new Map<string, number>()
    const callers = Array.from({ length: CALLERS }, (_, at) =>
      runCaller((members[at % 2] as Member).at, {
        random: createSeededRandom(seed + at),
        token: () => token,
        isOver: () => isOver,
        outcomes,
      }),
    )
    await pause(STORM_MS / 2)
    members[0].child.kill('SIGKILL')
    isOver = true
    await Promise.all(callers)
    members[1].child.kill('SIGTERM')
    await Promise.all(members.map(({ ended }) => ended))
    const forwarded = nodes[0].units() + nodes[1].units()
    const charged = await chargedTo(home, id)
    // A second, and what a busy machine adds to a timer of one.
    const mostLost = nodes[0].most(isFull ? 1500 : 2500) + nodes[0].node.texts.length
    t.diagnostic(`${forwarded} units forwarded, ${charged} charged; a kill may cost ${mostLost}`)
    assert.ok(forwarded > 100)
    assert.ok(charged <= forwarded, 'nothing is charged that was not forwarded')
    assert.ok(forwarded - charged <= mostLost, `${forwarded - charged} units were forgotten`)
  })
})
