import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Access } from '../../../src/access/call-access.ts'
import { pendingId } from '../../../src/access/provisioning/destinations.ts'
import type { AccessSnapshot } from '../../../src/access/snapshot/snapshot.ts'
import type { Customer, Destination, Subscription } from '../../../src/access/store/model.ts'
import type { Clock } from '../../../src/core/clock.ts'
import { makeTestFolder } from '../../../src/platform/files/test-folder.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { secureRandom } from '../../../src/platform/process/random.ts'
import { until } from '../../../src/platform/process/test-wait.ts'
import { type Logger, silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry, type MetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'
import type { LookupTableSource } from '../../../src/shreds/decoded/service.ts'
import { parseShredsOptions, type ShredsOptionsInput } from '../../../src/shreds/options.ts'
import { type LeaderSchedule, type Shreds, type ShredsSlotLength, startShreds } from '../../../src/shreds/service.ts'
import { encodeBase58 } from '../../../src/solana/crypto/base58.ts'
import { createSigningKey } from '../../../src/solana/crypto/ed25519.ts'
import { makeShreds } from '../../../src/solana/shred/make.ts'

export const LEADER = createSigningKey(new Uint8Array(32).fill(7))
export const LEADER_ID = encodeBase58(LEADER.publicKey)
export const VERSION = 27_350

/** One leader for all slots. */
export const oneLeader: LeaderSchedule = {
  ranges: () => [{ fromSlot: 0, toSlot: 2 ** 40, identities: [LEADER_ID] }],
  onChange: () => ({ [Symbol.dispose]() {} }),
}

/** The packets of a block: FEC sets of 64. */
export function blockPackets(slot: number, options: { sets?: number; version?: number; leader?: typeof LEADER } = {}) {
  const { sets = 1, version = VERSION, leader = LEADER } = options
  const payload = Buffer.alloc((sets - 1) * 30_816 + 20_000, slot & 0xff)
  const made = makeShreds({
    slot,
    parentSlot: Math.max(0, slot - 1),
    version,
    batches: [payload],
    chainedRoot: new Uint8Array(32).fill(3),
    leader,
  })
  return made.sets.flatMap(({ data, code }) => [...data, ...code])
}

export type Sink = Disposable & {
  readonly port: number
  readonly packets: Buffer[]
  /** Arrival of each packet, on the monotonic clock. */
  readonly times: number[]
  readonly socket: Socket
}

export async function openSink(port = 0, host = '127.0.0.1'): Promise<Sink> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  const packets: Buffer[] = []
  const times: number[] = []
  socket.on('message', (packet) => {
    packets.push(packet)
    times.push(performance.now())
  })
  socket.bind(port, host)
  await once(socket, 'listening')
  socket.setRecvBufferSize(4 * 1024 * 1024)
  return { port: socket.address().port, packets, times, socket, [Symbol.dispose]: () => void socket.close() }
}

export type Rig = AsyncDisposable & {
  readonly shreds: Shreds
  readonly registry: MetricsRegistry
  readonly reportFile: string
  readonly proven: { subscriptionId: string; code: string }[]
  readonly reasons: Map<string, string>
  /** Adds or changes a subscription and its destination; visible after `publish`. */
  put(name: string, destination: Partial<Destination>, changes?: Partial<Subscription>): void
  putPending(name: string, destination: Partial<Destination>): void
  suspendCustomer(): void
  publish(): void
  send(packets: readonly Uint8Array[]): Promise<void>
}

/** The shreds service over a store that is a few maps. */
export async function startRig(
  input: ShredsOptionsInput = {},
  given: {
    leaders?: LeaderSchedule
    slotLength?: ShredsSlotLength
    lookupTables?: LookupTableSource
    isDecoding?: boolean
    log?: Logger
    clock?: Clock
    onBytes?: Access['countBytesOf']
    setUp?: (rig: Pick<Rig, 'put' | 'putPending'>) => void
  } = {},
): Promise<Rig> {
  await using opening = new AsyncDisposableStack()
  const folder = opening.use(makeTestFolder())
  const customer: Customer = { id: 'cus_1', revision: 0, name: 'c', contact: '', state: 'active', createdAt: 0 }
  const customers = new Map([[customer.id, customer]])
  const subscriptions = new Map<string, Subscription>()
  const destinations = new Map<string, Destination>()
  const listeners = new Set<() => void>()
  const proven: { subscriptionId: string; code: string }[] = []
  const reasons = new Map<string, string>()

  const put: Rig['put'] = (name, destination, changes = {}) => {
    subscriptions.set(name, {
      id: name,
      revision: 0,
      customerId: customer.id,
      name,
      plan: 'starter',
      products: ['shreds-raw'],
      overrides: {},
      state: 'active',
      createdAt: 0,
      validUntil: null,
      ...changes,
    })
    destinations.set(name, newDestination(name, destination))
  }
  const putPending: Rig['putPending'] = (name, destination) =>
    void destinations.set(pendingId(name), newDestination(pendingId(name), { proof: 'unproven', ...destination }))
  given.setUp?.({ put, putPending })

  const snapshot = (): AccessSnapshot =>
    ({
      revision: 1,
      subscription: (id: string) => subscriptions.get(id),
      customer: (id: string) => customers.get(id),
      destination: (id: string) => destinations.get(id),
      destinations: () => destinations.values(),
    }) as unknown as AccessSnapshot
  const registry = opening.use(createMetricsRegistry())
  const reportFile = folder.file('reports.db')
  const shreds = opening.use(
    await startShreds(
      {
        ...parseShredsOptions({
          listen: '127.0.0.1:0',
          ...input,
          destinations: { allowLoopback: true, ...input.destinations },
        }),
        isDecoding: given.isDecoding ?? false,
      },
      {
        access: {
          snapshot,
          onChange(listener) {
            listeners.add(listener)
            return { [Symbol.dispose]: () => void listeners.delete(listener) }
          },
          countBytesOf: (subscriptionId, at, bytes) => given.onBytes?.(subscriptionId, at, bytes),
        },
        log: given.log ?? silentLogger,
        clock: given.clock ?? systemClock,
        random: secureRandom,
        registry,
        lifecycle: {
          degraded: (part, reason) => void reasons.set(part, reason),
          recovered: (part) => void reasons.delete(part),
        },
        reportFile,
        challengeKey: new Uint8Array(32).fill(5),
        prove: async (subscriptionId, code) => void proven.push({ subscriptionId, code }),
        leaders: given.leaders,
        slotLength: given.slotLength ?? { ms: () => 400, onChange: () => ({ [Symbol.dispose]() {} }), observe() {} },
        lookupTables: given.lookupTables,
      },
    ),
  )
  const sender = createSocket('udp4')
  sender.bind(0, '127.0.0.1')
  await once(sender, 'listening')
  opening.defer(() => void sender.close())

  const opened = opening.move()
  return {
    shreds,
    registry,
    reportFile,
    proven,
    reasons,
    put,
    putPending,
    suspendCustomer: () => void customers.set(customer.id, { ...customer, state: 'suspended' }),
    publish() {
      for (const listener of listeners) listener()
    },
    send: (packets) => sendAll(sender, packets, shreds.address.port),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** Sends in small portions, each after the receiver has read the previous one: the kernel drops what does not fit its receive buffer. */
export async function sendAll(sender: Socket, packets: readonly Uint8Array[], port: number): Promise<void> {
  for (let at = 0; at < packets.length; at += 32) {
    const sent = packets.slice(at, at + 32).map(
      (packet) =>
        new Promise<void>((resolve, reject) => {
          sender.send(packet, port, '127.0.0.1', (error) => (error ? reject(error) : resolve()))
        }),
    )
    await Promise.all(sent)
    await new Promise((resolve) => setImmediate(resolve))
    await untilTaken(port)
  }
}

/** Waits until the receive buffer of a local UDP port is empty. */
export function untilTaken(port: number): Promise<void> {
  return until('the receiver has read all packets', () => bufferedBytes(port) === 0, 60_000)
}

/** Bytes in the receive buffer according to /proc/net/udp; 0 when the port is not open. */
function bufferedBytes(port: number): number {
  const name = port.toString(16).toUpperCase().padStart(4, '0')
  // Columns: line number, local and remote address, state, then bytes to send and bytes received.
  // Only 127.0.0.1 and 0.0.0.0: another address may have the same port open for another process.
  const line = new RegExp(`^ *\\d+: (?:0100007F|00000000):${name} \\S+ \\S+ [0-9A-F]{8}:([0-9A-F]{8}) `, 'm')
  return Number.parseInt(line.exec(readFileSync('/proc/net/udp', 'latin1'))?.[1] ?? '0', 16)
}

function newDestination(id: string, changes: Partial<Destination>): Destination {
  return { id, revision: 0, ip: '127.0.0.1', port: 1, proof: 'vouched', paused: false, setAt: 0, ...changes }
}
