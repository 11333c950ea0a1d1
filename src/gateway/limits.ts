import { createHeldMemory, HeldAmounts, type HeldMemory } from '../core/held-amounts.ts'
import { createBucketMemory } from '../core/keyed-buckets.ts'
import { recordOf } from '../core/records.ts'
import { SharedTable } from '../core/shared-table.ts'
import { createWindowMemory } from '../core/window-counts.ts'
import { createFailureMemory } from '../platform/net/auth-tarpit.ts'
import {
  type ConnectionCounts,
  type ConnectionMemory,
  createConnectionMemory,
  openConnectionCounts,
} from '../platform/net/connection-caps.ts'

/**
 * What the gateway counts against limits that are not part of a plan, in memory that its threads share: a limit holds for the process, however
 * many threads it has and whichever of them sees a client. Main creates it; it stays when a thread dies.
 */
export type LimitMemory = {
  /** Connections of each listener, open and new. */
  readonly connections: Record<Server, ConnectionMemory>
  /** Token buckets by address, or by subscription (`pages`, `freeRefusals`, `freeMessages`). */
  readonly buckets: Record<Bucket, SharedArrayBuffer>
  /** Refused tokens by address. */
  readonly failures: SharedArrayBuffer
  /** gRPC calls by subscription that were cancelled right after they were made. */
  readonly earlyCancels: SharedArrayBuffer
  /** What is open at a time: health watches by address, reflection calls and unary gRPC calls by subscription. And bytes in memory by subscription. */
  readonly held: Record<Held, HeldMemory>
}

type Server = 'rpc' | 'ws' | 'grpc' | 'entries'
const SERVERS: readonly Server[] = ['rpc', 'ws', 'grpc', 'entries']
type Bucket = 'health' | 'open' | 'documents' | 'grpcHealth' | 'pages' | 'freeRefusals' | 'freeMessages'
const BUCKETS: readonly Bucket[] = [
  'health',
  'open',
  'documents',
  'grpcHealth',
  'pages',
  'freeRefusals',
  'freeMessages',
]
type Held = 'watches' | 'reflections' | 'unaryCalls' | 'bytes'
const HELD: readonly Held[] = ['watches', 'reflections', 'unaryCalls', 'bytes']
/** Subscriptions that cancel calls early, within ten seconds. */
const CANCELLING_MAX = 10_000

/** The limits as one thread sees them. */
export type SharedLimits = {
  readonly connections: Record<Server, ConnectionCounts>
  readonly buckets: Record<Bucket, SharedTable>
  readonly failures: SharedTable
  readonly earlyCancels: SharedTable
  readonly held: Record<Held, HeldAmounts>
  /** Releases what a thread that died has held. Called before the thread is started again. */
  reclaim(thread: number): void
}

/** Creates the memory for threads 0 to `threads` − 1. It is posted to them as it is. */
export function createSharedLimits({ threads }: { readonly threads: number }): LimitMemory {
  return {
    connections: recordOf(SERVERS, () => createConnectionMemory(threads)),
    buckets: recordOf(BUCKETS, () => createBucketMemory()),
    failures: createFailureMemory(),
    earlyCancels: createWindowMemory(CANCELLING_MAX),
    held: recordOf(HELD, () => createHeldMemory({ threads })),
  }
}

/** Opens the memory in one thread; `thread` is used by one thread at a time. */
export function openSharedLimits(memory: LimitMemory, thread: number): SharedLimits {
  const connections = recordOf(SERVERS, (server) => openConnectionCounts(memory.connections[server], thread))
  const buckets = recordOf(BUCKETS, (bucket) => new SharedTable(memory.buckets[bucket], thread))
  const failures = new SharedTable(memory.failures, thread)
  const earlyCancels = new SharedTable(memory.earlyCancels, thread)
  const held = recordOf(HELD, (name) => new HeldAmounts(memory.held[name], thread))
  return {
    connections,
    buckets,
    failures,
    earlyCancels,
    held,
    reclaim(dead) {
      const amounts = [...Object.values(connections).map(({ open }) => open), ...Object.values(held)]
      const tables = [...Object.values(connections).map(({ fresh }) => fresh), ...Object.values(buckets)]
      // Locks first: other threads may wait for them.
      for (const table of [...tables, failures, earlyCancels]) table.unlockAll(dead)
      for (const amount of amounts) amount.reclaim(dead)
    },
  }
}
