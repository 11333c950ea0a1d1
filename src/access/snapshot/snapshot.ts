import type {
  Customer,
  DedicatedNode,
  Destination,
  IndexerCredential,
  Records,
  Subscription,
  Token,
} from '../store/model.ts'
import { createUnpacker } from '../store/rows.ts'
import { RECORD_TABLES } from '../store/tables.ts'
import { type Packed, PackedMap, type Packing, type SharedMap } from './packed-map.ts'

/** The store at one revision, immutable; a newer snapshot replaces it. */
export interface AccessSnapshot {
  readonly revision: number
  /** A token by its SHA-256 in hex, whatever its state, with its subscription and customer. */
  byDigest(sha256: string): { token: Token; subscription: Subscription; customer: Customer } | undefined
  subscription(id: string): Subscription | undefined
  customer(id: string): Customer | undefined
  destination(subscriptionId: string): Destination | undefined
  /** Active and pending destinations. */
  destinations(): Iterable<Destination>
  indexerCredential(username: string): IndexerCredential | undefined
  node(id: string): DedicatedNode | undefined
  nodesOf(subscriptionId: string): readonly DedicatedNode[]
  /** All dedicated nodes, assigned or not. */
  nodes(): Iterable<DedicatedNode>
  counts(): { customers: number; subscriptions: number; tokens: number }
  subscriptions(): Iterable<Subscription>
}

/** The record kinds of a snapshot and their key fields, none of which ever changes in a record. */
export const SNAPSHOT_KEYS = {
  customers: 'id',
  subscriptions: 'id',
  tokens: 'sha256',
  destinations: 'id',
  indexerCredentials: 'username',
  nodes: 'id',
} as const satisfies { [K in keyof Records]?: keyof Records[K] }

export type SnapshotKind = keyof typeof SNAPSHOT_KEYS

export const SNAPSHOT_KINDS = Object.keys(SNAPSHOT_KEYS) as SnapshotKind[]

type Maps = { readonly [K in SnapshotKind]: PackedMap<Records[K]> }

/** A snapshot as it is posted to other threads. */
export type SharedSnapshot = { readonly revision: number; readonly maps: Readonly<Record<SnapshotKind, SharedMap>> }

/** Collects changes for the snapshot of a later revision. */
export type SnapshotDraft = {
  add(kind: SnapshotKind, changes: readonly Packed[]): void
  finish(revision: number): Snapshot
}

export class Snapshot implements AccessSnapshot {
  readonly revision: number
  readonly #maps: Maps
  #nodesOf: ReadonlyMap<string, readonly DedicatedNode[]> | undefined

  private constructor(revision: number, maps: Maps) {
    this.revision = revision
    this.#maps = maps
  }

  static empty(): Snapshot {
    return new Snapshot(
      0,
      mapsOf((kind) => PackedMap.empty(packingOf(kind))),
    )
  }

  /** The snapshot that another thread has shared. */
  static fromShared({ revision, maps }: SharedSnapshot): AccessSnapshot {
    return new Snapshot(
      revision,
      mapsOf((kind) => PackedMap.fromShared(packingOf(kind), maps[kind])),
    )
  }

  shared(): SharedSnapshot {
    const maps = SNAPSHOT_KINDS.map((kind) => [kind, this.#maps[kind].shared()])
    return { revision: this.revision, maps: Object.fromEntries(maps) as SharedSnapshot['maps'] }
  }

  /** Does not change this snapshot. */
  draft(): SnapshotDraft {
    const drafts = Object.fromEntries(SNAPSHOT_KINDS.map((kind) => [kind, this.#maps[kind].draft()]))
    return {
      add(kind, changes) {
        for (const change of changes) drafts[kind]?.set(change)
      },
      finish(revision) {
        const maps = Object.entries(drafts).map(([kind, draft]) => [kind, draft.finish()])
        return new Snapshot(revision, Object.fromEntries(maps) as Maps)
      },
    }
  }

  byDigest(sha256: string): { token: Token; subscription: Subscription; customer: Customer } | undefined {
    const token = this.#maps.tokens.get(sha256)
    const subscription = token && this.#maps.subscriptions.get(token.subscriptionId)
    const customer = subscription && this.#maps.customers.get(subscription.customerId)
    return token && subscription && customer && { token, subscription, customer }
  }

  subscription(id: string): Subscription | undefined {
    return this.#maps.subscriptions.get(id)
  }

  customer(id: string): Customer | undefined {
    return this.#maps.customers.get(id)
  }

  destination(subscriptionId: string): Destination | undefined {
    return this.#maps.destinations.get(subscriptionId)
  }

  destinations(): Iterable<Destination> {
    return this.#maps.destinations.values()
  }

  indexerCredential(username: string): IndexerCredential | undefined {
    return this.#maps.indexerCredentials.get(username)
  }

  node(id: string): DedicatedNode | undefined {
    return this.#maps.nodes.get(id)
  }

  nodes(): Iterable<DedicatedNode> {
    return this.#maps.nodes.values()
  }

  nodesOf(subscriptionId: string): readonly DedicatedNode[] {
    this.#nodesOf ??= Map.groupBy(this.#maps.nodes.values(), (node) => node.subscriptionId ?? '')
    return this.#nodesOf.get(subscriptionId) ?? []
  }

  counts(): { customers: number; subscriptions: number; tokens: number } {
    const { customers, subscriptions, tokens } = this.#maps
    return { customers: customers.size, subscriptions: subscriptions.size, tokens: tokens.size }
  }

  subscriptions(): Iterable<Subscription> {
    return this.#maps.subscriptions.values()
  }
}

function mapsOf(mapOf: <K extends SnapshotKind>(kind: K) => PackedMap<Records[K]>): Maps {
  return Object.fromEntries(SNAPSHOT_KINDS.map((kind) => [kind, mapOf(kind)])) as unknown as Maps
}

function packingOf<K extends SnapshotKind>(kind: K): Packing<Records[K]> {
  const key = SNAPSHOT_KEYS[kind] as keyof Records[K]
  return { unpack: createUnpacker(RECORD_TABLES[kind]), keyOf: (record) => record[key] as string }
}
