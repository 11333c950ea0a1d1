import { LayeredMap } from './layered-map.ts'
import type { Customer, DedicatedNode, Destination, IndexerCredential, Records, Subscription, Token } from './model.ts'

/** What a process knows of the store at one revision. It never changes; a newer one takes its place. */
export interface AccessSnapshot {
  readonly revision: number
  /** A token by its SHA-256 in hex, whatever its state, with whom it belongs to. */
  byDigest(sha256: string): { token: Token; subscription: Subscription; customer: Customer } | undefined
  subscription(id: string): Subscription | undefined
  customer(id: string): Customer | undefined
  destination(subscriptionId: string): Destination | undefined
  indexerCredential(username: string): IndexerCredential | undefined
  node(id: string): DedicatedNode | undefined
  nodesOf(subscriptionId: string): readonly DedicatedNode[]
  counts(): { customers: number; subscriptions: number; tokens: number }
  subscriptions(): Iterable<Subscription>
}

/** The kinds a snapshot holds, and the field each is found by. None of these fields changes in the life of a record. */
const KEYS = {
  customers: 'id',
  subscriptions: 'id',
  tokens: 'sha256',
  destinations: 'id',
  indexerCredentials: 'username',
  nodes: 'id',
} as const satisfies { [K in keyof Records]?: keyof Records[K] }

export type SnapshotKind = keyof typeof KEYS

export const SNAPSHOT_KINDS = Object.keys(KEYS) as SnapshotKind[]

type Layers = { readonly [K in SnapshotKind]: LayeredMap<Records[K]> }

/** New and changed records of each kind, by what they are found by. */
export type SnapshotChanges = { readonly [K in SnapshotKind]: Map<string, Records[K]> }

export function createChanges(): SnapshotChanges {
  return Object.fromEntries(SNAPSHOT_KINDS.map((kind) => [kind, new Map()])) as unknown as SnapshotChanges
}

export function addChange<K extends SnapshotKind>(changes: SnapshotChanges, kind: K, record: Records[K]): void {
  const byKey: Map<string, Records[K]> = changes[kind]
  byKey.set(record[KEYS[kind] as keyof Records[K]] as string, record)
}

export class Snapshot implements AccessSnapshot {
  readonly revision: number
  readonly #layers: Layers
  readonly #nodesOf: ReadonlyMap<string, readonly DedicatedNode[]>

  private constructor(revision: number, layers: Layers) {
    this.revision = revision
    this.#layers = layers
    const owned = [...layers.nodes.values()].filter((node) => node.subscriptionId !== null)
    this.#nodesOf = Map.groupBy(owned, (node) => node.subscriptionId as string)
  }

  static readonly empty = new Snapshot(
    0,
    Object.fromEntries(SNAPSHOT_KINDS.map((kind) => [kind, new LayeredMap()])) as unknown as Layers,
  )

  /** The snapshot of a later revision. This one stays as it is for those who hold it. */
  after(changes: SnapshotChanges, revision: number): Snapshot {
    const layer = <K extends SnapshotKind>(kind: K): [K, LayeredMap<Records[K]>] => {
      const old: LayeredMap<Records[K]> = this.#layers[kind]
      return [kind, old.with(changes[kind])]
    }
    return new Snapshot(revision, Object.fromEntries(SNAPSHOT_KINDS.map(layer)) as unknown as Layers)
  }

  byDigest(sha256: string): { token: Token; subscription: Subscription; customer: Customer } | undefined {
    const token = this.#layers.tokens.get(sha256)
    const subscription = token && this.#layers.subscriptions.get(token.subscriptionId)
    const customer = subscription && this.#layers.customers.get(subscription.customerId)
    return token && subscription && customer && { token, subscription, customer }
  }

  subscription(id: string): Subscription | undefined {
    return this.#layers.subscriptions.get(id)
  }

  customer(id: string): Customer | undefined {
    return this.#layers.customers.get(id)
  }

  destination(subscriptionId: string): Destination | undefined {
    return this.#layers.destinations.get(subscriptionId)
  }

  indexerCredential(username: string): IndexerCredential | undefined {
    return this.#layers.indexerCredentials.get(username)
  }

  node(id: string): DedicatedNode | undefined {
    return this.#layers.nodes.get(id)
  }

  nodesOf(subscriptionId: string): readonly DedicatedNode[] {
    return this.#nodesOf.get(subscriptionId) ?? []
  }

  counts(): { customers: number; subscriptions: number; tokens: number } {
    const { customers, subscriptions, tokens } = this.#layers
    return { customers: customers.size, subscriptions: subscriptions.size, tokens: tokens.size }
  }

  subscriptions(): Iterable<Subscription> {
    return this.#layers.subscriptions.values()
  }
}
