import assert from 'node:assert/strict'
import type { AcceptedSubscription, EventFilter, Hex, RawEventName } from '../../src/contract/stream-events.ts'
import { createManualClock } from '../../src/core/clock.ts'
import type { RawEventPart } from '../../src/execution/source/message.ts'
import type { RawEventSelection } from '../../src/execution/source/raw-event-demand.ts'
import { StreamHub } from '../../src/execution/stream/hub.ts'
import { createSeqCounter } from '../../src/execution/stream/seq-counter.ts'
import { StreamSession } from '../../src/execution/stream/session.ts'
import { parseSubscribeQuery } from '../../src/execution/stream/subscription.ts'
import { checkConnection, createFrameReader, type Published } from '../support/execution/history-checker.ts'
import { createSeqMemory } from '../support/execution/start.ts'
import { createRandom } from '../support/process/property.ts'
import type { SimWorld } from './run-seeds.ts'

/**
 * The hub on a virtual clock, with clients that connect, disconnect, stall, resume at every boundary and change their subscription, and
 * with restarts of the service. A model computes what each client must receive.
 */

const BLOCKED: ReadonlySet<RawEventName> = new Set<RawEventName>(['StorageAccess'])
const SUBSCRIPTIONS = [
  'TPS,ContentionData,TopAccesses,Lifecycle',
  'TPS',
  'Lifecycle,ConflictData',
  'TxnLog,BlockStart',
  JSON.stringify({ events: ['TxnLog', 'TPS'], filters: [{ events: ['TxnLog'], address: address(1) }] }),
  JSON.stringify({ events: ['TxnHeaderStart'], filters: [{ txn_index: { min: 2 } }], correlate: true }),
]
const KINDS = ['TPS', 'ContentionData', 'ConflictData', 'TopAccesses', 'Lifecycle'] as const
const RAW = ['BlockStart', 'TxnHeaderStart', 'TxnLog', 'TxnEnd'] as const

function address(n: number): Hex {
  return `0x${n.toString(16).padStart(40, '0')}`
}

const EVENTS = ['connections', 'resumed', 'outOfWindow', 'gaps', 'restarts', 'slowCloses'] as const
type HubStats = Record<(typeof EVENTS)[number], number>

type Item = { seq: number; kind: string; text: string; parts: RawEventPart[]; hidden: RawEventPart[] }

class World {
  readonly random: (below: number) => number
  readonly clock = createManualClock()
  readonly store = createSeqMemory()
  readonly rules = { itemsMax: 8, blocked: BLOCKED }
  readonly limits: { framesMax: number; bytesMax: number; dropsMax: number }
  readonly buffer: { entriesMax: number; bytesMax: number }
  readonly items: Item[] = []
  readonly clients = new Set<Client>()
  /** Cursors of disconnected clients, with their subscription. */
  readonly gone: { cursor: string; subscribe: string }[] = []
  active: readonly RawEventName[] = []
  #selections: RawEventSelection[] = []
  readonly #asked = new Map<RawEventName, number>()
  #version = 0
  #deferred: (() => void)[] = []
  #value = 0
  hub: StreamHub
  readonly stats: HubStats = { connections: 0, resumed: 0, outOfWindow: 0, gaps: 0, restarts: 0, slowCloses: 0 }

  constructor(seed: number) {
    this.random = createRandom(seed)
    this.limits = {
      framesMax: 4 + this.random(30),
      bytesMax: 4000 + this.random(20_000),
      dropsMax: 5 + this.random(60),
    }
    this.buffer = { entriesMax: 3 + this.random(120), bytesMax: 2000 + this.random(60_000) }
    this.hub = this.#start()
  }

  #start(): StreamHub {
    return new StreamHub(
      { buffer: this.buffer, client: this.limits, rules: this.rules, lingerMs: 1000 },
      {
        clock: this.clock,
        seq: createSeqCounter({
          store: this.store,
          nowMs: this.clock.nowMs,
          onFault: (error) => assert.fail(String(error)),
        }),
        defer: (run) => void this.#deferred.push(run),
        hello: () => ({}) as never,
        snapshot: (kind) => (kind === 'TPS' && this.#value > 0 ? [String(this.#value)] : []),
        onRawEventSelection: (selection) => {
          this.#selections.push(selection)
          for (const name of RAW) if (!selection.names.includes(name)) this.#asked.delete(name)
          for (const name of selection.names) if (!this.#asked.has(name)) this.#asked.set(name, selection.version)
        },
        count: { published() {}, delivered() {}, dropped() {}, joined() {}, refused() {} },
      },
    )
  }

  /** Whether the event was requested without interruption since a version that the source has received. */
  #isReported(name: RawEventName): boolean {
    return this.active.includes(name) && this.#version >= (this.#asked.get(name) ?? Number.POSITIVE_INFINITY)
  }

  /** The source receives the requested events later, as a thread does. */
  turnSource(): void {
    const selection = this.#selections.shift()
    if (selection === undefined) return
    this.active = selection.names
    this.#version = selection.version
    this.hub.onRawEventsActive(selection)
  }

  publish(): void {
    const { random } = this
    const seq = this.hub.window.newestSeq
    const choice = random(10)
    if (choice === 0) {
      // Each has a unique text: a warning has no number that would distinguish two equal ones.
      const from = ++this.#value * 2
      this.hub.publishWarning({ type: 'ring_gap', from_seqno: from, to_seqno: from + 1, blocks_dropped: 1 })
      this.#note(
        'Warning',
        `{"seq":0,"Warning":{"type":"ring_gap","from_seqno":${from},"to_seqno":${from + 1},"blocks_dropped":1}}`,
      )
    } else if (choice < 5) {
      const made = Array.from({ length: 1 + random(4) }, () => this.#event())
      this.hub.publishEvents(made.filter(({ name }) => this.active.includes(name)))
      const parts = made.filter(({ name }) => this.#isReported(name))
      const hidden = made.filter(({ name }) => !this.#isReported(name))
      if (parts.length > 0) {
        this.#note('Events', '', parts, hidden)
      } else if (hidden.length > 0) this.items.push({ seq: seq + 0.5, kind: 'hidden', text: '', parts: [], hidden })
    } else {
      const kind = KINDS[random(KINDS.length)] as (typeof KINDS)[number]
      this.#value += 1
      const payload =
        kind === 'TPS' ? String(this.#value) : JSON.stringify({ n: this.#value, fill: 'x'.repeat(random(900)) })
      this.hub.publish(kind, payload)
      this.#note(kind, `"${kind}":${payload}}`)
    }
  }

  #note(kind: string, text: string, parts: RawEventPart[] = [], hidden: RawEventPart[] = []): void {
    const seq = this.hub.window.newestSeq
    this.items.push({
      seq,
      kind,
      text: kind === 'Warning' || kind === 'Events' ? text : `{"seq":${seq},${text}`,
      parts,
      hidden,
    })
  }

  #event(): RawEventPart {
    const { random } = this
    const name = RAW[random(RAW.length)] as RawEventName
    const txnIndex = random(5)
    const fields =
      name === 'BlockStart' ? {} : { txnIndex, ...(name === 'TxnLog' ? { addresses: [address(random(3))] } : {}) }
    const header = name === 'BlockStart' || random(4) === 0 ? undefined : { txnIndex }
    return { name, json: JSON.stringify({ n: ++this.#value }), fields, header }
  }

  flush(): void {
    for (const run of this.#deferred.splice(0)) run()
  }

  restart(): void {
    this.stats.restarts += 1
    for (const client of [...this.clients]) client.leave()
    this.hub[Symbol.dispose]()
    this.#deferred = []
    this.#selections = []
    this.active = []
    this.#asked.clear()
    this.#version = 0
    this.clock.advance(5000)
    this.hub = this.#start()
  }
}

class Client {
  readonly #world: World
  readonly #reader = createFrameReader()
  readonly #joined: StreamSession
  readonly subscribe: string
  readonly resumeFrom: string | undefined
  readonly texts: string[] = []
  isClear = true
  closed: number | undefined
  readonly isSlow: boolean

  constructor(world: World, subscribe: string, resumeFrom: string | undefined) {
    this.#world = world
    this.subscribe = subscribe
    this.resumeFrom = resumeFrom
    this.isSlow = world.random(3) === 0
    const socket = {
      isClear: () => this.isClear,
      write: (bytes: Buffer) => {
        assert(this.isClear, 'the hub writes only to a socket that has drained')
        this.texts.push(...this.#reader.push(bytes))
        if (world.random(this.isSlow ? 2 : 12) === 0) this.isClear = false
      },
    }
    this.#joined = new StreamSession(
      world.hub,
      {
        get isClear() {
          return socket.isClear()
        },
        write: socket.write,
        close: (code) => {
          this.closed = code
        },
      },
      { subscribe: parseSubscribeQuery(subscribe, world.rules), resumeFrom },
    )
    world.clients.add(this)
    world.stats.connections += 1
  }

  drain(): void {
    if (this.isClear || this.closed !== undefined) return
    this.isClear = true
    this.#joined.drained()
  }

  drainAll(): void {
    for (let turns = 0; turns < 100_000 && !this.isClear && this.closed === undefined; turns++) this.drain()
  }

  leave(): void {
    this.#world.clients.delete(this)
    this.#joined.left()
    this.check(false)
  }

  check(isComplete: boolean): void {
    const { stats, items, gone } = this.#world
    const parsed = parseSubscribeQuery(this.subscribe, this.#world.rules)
    assert(parsed.ok)
    const published = expectedFrames(items, parsed.subscription)
    const { texts, resumeFrom } = this
    const verdict = checkConnection(
      { texts, resumeFrom, isComplete: isComplete && this.closed === undefined },
      published,
    )
    assert.deepEqual(verdict.violations, [])
    stats.gaps += verdict.reportedGaps.length
    if (verdict.isResumed) {
      stats.resumed += 1
      const from = resumeFrom === '0' ? Number.POSITIVE_INFINITY : Number(resumeFrom)
      const to = verdict.cursor ?? 0
      const hidden = items.filter(({ seq }) => seq > from && seq <= to).flatMap((item) => item.hidden)
      assert(
        !hidden.some((part) => passes(part, parsed.subscription)),
        'an event was not produced, and the resume hid it',
      )
    } else if (resumeFrom !== undefined) stats.outOfWindow += 1
    if (this.closed !== undefined) stats.slowCloses += 1
    if (verdict.cursor !== undefined) gone.push({ cursor: String(verdict.cursor), subscribe: this.subscribe })
  }
}

/** The model: the frames of a subscription, in the simplest form. */
function expectedFrames(items: readonly Item[], subscription: AcceptedSubscription): Published[] {
  return items.flatMap(({ seq, kind, text, parts }) => {
    if (kind === 'hidden') return []
    if (kind === 'Warning' || (subscription.events as readonly string[]).includes(kind)) return [{ seq, text }]
    const passing = parts.filter((part) => passes(part, subscription))
    return passing.length === 0
      ? []
      : [{ seq, text: `{"seq":${seq},"Events":[${passing.map(({ json }) => json).join(',')}]}` }]
  })
}

function passes(part: RawEventPart, { events, filters, correlate }: AcceptedSubscription): boolean {
  const isIn = (name: RawEventName, fields: RawEventPart['fields']): boolean => {
    if (!events.includes(name)) return false
    const about = filters.filter((filter) => filter.events === undefined || filter.events.includes(name))
    return about.length === 0 || about.some((filter) => fits(fields, filter))
  }
  if (isIn(part.name, part.fields)) return true
  return correlate && part.header !== undefined && isIn('TxnHeaderStart', part.header)
}

function fits({ txnIndex, addresses }: RawEventPart['fields'], filter: EventFilter): boolean {
  if (filter.txn_index !== undefined && !(txnIndex !== undefined && txnIndex >= (filter.txn_index.min ?? 0)))
    return false
  return filter.address === undefined || addresses?.includes(filter.address as Hex) === true
}

/** Runs one history from its seed. Throws where a client received other frames than the model. */
function run(seed: number): HubStats {
  const world = new World(seed)
  const { random } = world
  const connect = (): void => {
    const subscribe = SUBSCRIPTIONS[random(SUBSCRIPTIONS.length)] as string
    const { oldestSeq, newestSeq } = world.hub.window
    const known = world.gone[random(world.gone.length + 1)]
    const choice = random(4)
    if (choice === 0 && known !== undefined) new Client(world, known.subscribe, known.cursor)
    else if (choice === 1) {
      // Every boundary of the window, from two before it to two after it.
      const edges = [oldestSeq - 2, oldestSeq - 1, oldestSeq, newestSeq - 1, newestSeq, newestSeq + 1, newestSeq + 2, 0]
      new Client(world, subscribe, String(Math.max(0, edges[random(edges.length)] as number)))
    } else if (choice === 2) new Client(world, subscribe, ['', 'x', '-1', '1e3', '99999999999999999999'][random(5)])
    else new Client(world, subscribe, undefined)
  }
  for (let step = 0; step < 400; step++) {
    const clients = [...world.clients]
    const one = clients[random(Math.max(1, clients.length))]
    const choice = random(100)
    if (choice < 45) world.publish()
    else if (choice < 60) world.flush()
    else if (choice < 70) one?.drain()
    else if (choice < 76) one?.drainAll()
    else if (choice < 86) {
      if (clients.length < 12) connect()
    } else if (choice < 92) one?.leave()
    else if (choice < 97) world.turnSource()
    else if (choice < 99) world.clock.advance(random(2000))
    else if (random(4) === 0) world.restart()
  }
  // At the end, every connected client must have received everything.
  world.flush()
  for (const client of [...world.clients]) {
    client.drainAll()
    client.check(true)
  }
  return world.stats
}

export const hubWorld: SimWorld<(typeof EVENTS)[number]> = { name: 'hub', events: EVENTS, run }
