import assert from 'node:assert/strict'
import { createManualClock, type ManualClock } from '../../src/core/clock.ts'
import { createSeededRandom } from '../../src/core/random.ts'
import type { HttpOutcome } from '../../src/platform/http/client/exchange.ts'
import type { HttpPool } from '../../src/platform/http/client/pool.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../src/platform/telemetry/metrics-registry.ts'
import { createNode } from '../../src/upstreams/create-node.ts'
import { forwardCall } from '../../src/upstreams/http-call.ts'
import { upstreamsMetrics } from '../../src/upstreams/metrics.ts'
import type { UpstreamNode } from '../../src/upstreams/node.ts'
import { parseUpstreamsOptions } from '../../src/upstreams/options.ts'
import { type ClientView, createClientView, createPool, type Pool } from '../../src/upstreams/pool/pool.ts'
import { type Probes, startProbes } from '../../src/upstreams/probes/probe.ts'
import type { UpstreamResponse } from '../../src/upstreams/response.ts'
import { createRetryBudget } from '../../src/upstreams/retry-budget.ts'
import { createRandom } from '../support/process/property.ts'
import type { SimWorld } from './run-seeds.ts'

/**
 * Two to four nodes that refuse, drop connections, stop responding, fall behind and recover, with clients that read and write. Every call ends once
 * and in time, a write is executed at most once, retries stay within their budget, no client reads an older slot while a node could prevent it, and
 * every call succeeds once all nodes have recovered.
 */

const EVENTS = ['calls', 'responses', 'retried', 'noUpstream', 'timeouts', 'notSent', 'maybeSent', 'faults'] as const
type Seen = Record<(typeof EVENTS)[number], number>

const STEPS = 120
const SLOT_MS = 400
const MOODS = ['well', 'refusing', 'breaking', 'silent', 'erring'] as const
type Mood = (typeof MOODS)[number]

/** A simulated node. */
class SimNode {
  mood: Mood = 'well'
  /** The slot at which its chain has stalled, if it has. */
  stalledAt: number | undefined
  /** Writes it has executed, by number. */
  readonly writes: number[] = []
  calls = 0
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  get slot(): number {
    return this.stalledAt ?? this.#world.slot
  }

  /** The transport to it, with the guarantees of the real one: one outcome, never before `call` returns, by the deadline. */
  transport(): HttpPool {
    const { clock, random } = this.#world
    let inFlight = 0
    return {
      get inFlight() {
        return inFlight
      },
      connections: 1,
      // The world has no pool service that would move calls away.
      giveUp() {},
      call: ({ body, deadlineMs }, done) => {
        const text = String(body instanceof Uint8Array ? Buffer.from(body) : body)
        const isProbe = text.includes('"id":1,')
        inFlight += 1
        let isDone = false
        const end = (outcome: HttpOutcome) => {
          if (isDone) return
          isDone = true
          inFlight -= 1
          timer.cancel()
          done(outcome)
        }
        const timer = clock.setTimer(deadlineMs, () =>
          end({ kind: 'maybe-sent', cause: 'deadline', message: 'no response in time' }),
        )
        clock.setTimer(1 + random(20), () => {
          if (isDone) return
          if (!isProbe) {
            this.calls += 1
            this.#world.attempts.set(numberOf(text), (this.#world.attempts.get(numberOf(text)) ?? 0) + 1)
          }
          const outcome = this.#respond(text, isProbe)
          if (outcome !== undefined) end(outcome)
        })
        return { abort: () => end({ kind: 'maybe-sent', cause: 'aborted', message: 'not wanted' }) }
      },
      [Symbol.dispose]() {},
    }
  }

  #respond(text: string, isProbe: boolean): HttpOutcome | undefined {
    const { random } = this.#world
    if (this.mood === 'refusing') return { kind: 'not-sent', cause: 'connect', message: 'refused' }
    const isDoneFirst = this.mood === 'well' || random(2) === 0
    if (!isProbe && isDoneFirst && text.includes('"write"')) this.writes.push(numberOf(text))
    if (this.mood === 'silent') return undefined
    if (this.mood === 'breaking') return { kind: 'maybe-sent', cause: 'broken', message: 'the connection ended' }
    const status = this.mood === 'erring' ? 502 : 200
    const result = text.includes('getSlot') ? String(this.slot) : `{"context":{"slot":${this.slot}},"value":1}`
    const body = Buffer.from(status === 200 ? `{"jsonrpc":"2.0","result":${result},"id":1}` : '<html>')
    const head = { status, bodyBytes: body.length, keepsAlive: true, idleHintMs: undefined }
    return { kind: 'reply', head, body, rest: undefined }
  }
}

const numberOf = (text: string): number => Number(/"n":(\d+)/.exec(text)?.[1])

class World implements Disposable {
  readonly random: (below: number) => number
  readonly clock: ManualClock = createManualClock()
  readonly seen: Seen = Object.fromEntries(EVENTS.map((event) => [event, 0])) as Seen
  readonly sims: SimNode[]
  readonly pool: Pool
  readonly #stack = new DisposableStack()
  readonly #options = parseUpstreamsOptions({ health: { lagSlotsMax: 25 } })
  readonly #budget = createRetryBudget(this.#options.calls.retryShare)
  readonly #metrics
  readonly clients: ClientView[]
  /** The number of nodes a call has reached. */
  readonly attempts = new Map<number, number>()
  slot = 1000
  pending = 0
  #calls = 0

  constructor(seed: number) {
    this.random = createRandom(seed)
    const registry = createMetricsRegistry()
    const names = Array.from({ length: 2 + this.random(3) }, (_, at) => `n${at}`)
    this.#metrics = upstreamsMetrics(registry)
    for (const name of names) this.#metrics.add(name)
    this.sims = names.map(() => new SimNode(this))
    const deps = { clock: this.clock, random: createSeededRandom(seed), log: silentLogger }
    const probes: Probes[] = []
    const nodes = names.map(
      (name, at): UpstreamNode =>
        this.#stack.use(
          createNode(
            {
              ...{ name, label: name, rpc: 'http://127.0.0.1:1', ws: undefined, grpc: undefined },
              ...{ credential: undefined, credentialHeader: 'x-token', allowPrivate: true, weight: 1 },
            },
            this.#options,
            { ...deps, createHttp: () => (this.sims[at] as SimNode).transport() },
            { requestProbe: () => probes[at]?.probe(), onSilent() {}, onChange() {} },
          ),
        ),
    )
    this.pool = createPool(nodes, undefined, {
      ...{ log: silentLogger, clock: this.clock, slotMs: () => SLOT_MS },
    })
    const probeDeps = { ...deps, onSlot: this.pool.assess, onSlotLength() {} }
    for (const node of nodes) probes.push(this.#stack.use(startProbes(node, this.#options.health, probeDeps)))
    this.#stack.use(this.clock.setRepeating(SLOT_MS, () => void (this.slot += 1)))
    this.clients = Array.from({ length: 4 }, createClientView)
  }

  call(): void {
    const { seen, clock, random } = this
    const view = this.clients[random(this.clients.length)] as ClientView
    const sawSlot = view.slot
    const isKept = this.pool.nodes.some(
      ({ candidates, health, isSilent }) => candidates.rpc.isAvailable && !isSilent && health.slot >= sawSlot,
    )
    const isWrite = random(4) === 0
    const n = ++this.#calls
    const body = Buffer.from(
      `{"jsonrpc":"2.0","id":2,"method":"${isWrite ? 'write' : 'getBalance'}","params":{"n":${n}}}`,
    )
    const wanted = { body, kind: isWrite ? ('write' as const) : ('read' as const), isHeavy: false, view }
    const startedMs = clock.monotonicMs()
    let hasReturned = false
    let isDone = false
    seen.calls += 1
    this.pending += 1
    forwardCall(this.pool, wanted, this.#options.calls, {
      clock,
      budget: this.#budget,
      metrics: this.#metrics,
      done: (outcome) => {
        assert.ok(hasReturned, 'the outcome was delivered before the call returned')
        assert.ok(!isDone, 'an outcome was delivered twice')
        isDone = true
        this.pending -= 1
        const tookMs = clock.monotonicMs() - startedMs
        assert.ok(tookMs <= this.#options.calls.deadlineMs + 100, `a call took ${tookMs} ms`)
        this.#count(outcome)
        // After a failure a second node is picked even when it is behind.
        if (outcome.kind === 'responded' && isKept && this.attempts.get(n) === 1)
          assert.ok(slotIn(outcome.body) >= sawSlot, `a client at ${sawSlot} read ${slotIn(outcome.body)}`)
      },
    })
    hasReturned = true
  }

  #count(outcome: UpstreamResponse): void {
    const { seen } = this
    if (outcome.kind === 'no-upstream') seen.noUpstream += 1
    else if (outcome.kind === 'timeout') seen.timeouts += 1
    else if (outcome.kind === 'failed-not-sent') seen.notSent += 1
    else if (outcome.kind === 'failed-maybe-sent') seen.maybeSent += 1
    else seen.responses += 1
  }

  disturb(): void {
    const sim = this.sims[this.random(this.sims.length)] as SimNode
    this.seen.faults += 1
    if (this.random(4) === 0) sim.stalledAt = sim.stalledAt === undefined ? this.slot : undefined
    else sim.mood = MOODS[this.random(MOODS.length)] as Mood
  }

  heal(): void {
    for (const sim of this.sims) {
      sim.mood = 'well'
      sim.stalledAt = undefined
    }
  }

  check(): void {
    const written = this.sims.flatMap(({ writes }) => writes)
    assert.equal(new Set(written).size, written.length, 'a write was executed twice')
    const sent = this.sims.reduce((sum, { calls }) => sum + calls, 0)
    this.seen.retried += Math.max(0, sent - this.seen.calls)
  }

  [Symbol.dispose](): void {
    this.#stack.dispose()
  }
}

function slotIn(body: Buffer): number {
  return Number(/"slot":(\d+)/.exec(body.toString())?.[1] ?? Number.POSITIVE_INFINITY)
}

async function run(seed: number): Promise<Seen> {
  using world = new World(seed)
  const { random, clock } = world
  await clock.advanceAsync(2000)
  for (let step = 0; step < STEPS; step++) {
    const choice = random(10)
    if (choice < 7) for (let calls = 1 + random(3); calls > 0; calls--) world.call()
    else if (choice < 8) world.disturb()
    await clock.advanceAsync(random(200))
  }
  world.heal()
  await clock.advanceAsync(20_000)
  assert.equal(world.pending, 0, 'a call never ended')
  const { responses: before } = world.seen
  for (let call = 0; call < 20; call++) {
    world.call()
    await clock.advanceAsync(100)
  }
  assert.equal(world.seen.responses - before, 20, 'all nodes are healthy, and a call got no response')
  for (const { breaker } of world.pool.nodes) assert.equal(breaker.state, 'closed')
  world.check()
  return world.seen
}

export const poolWorld: SimWorld<(typeof EVENTS)[number]> = { name: 'pool', oneIn: 1, events: EVENTS, run }
