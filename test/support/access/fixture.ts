import type { AccessSnapshot } from '../../../src/access/snapshot/snapshot.ts'
import type { Customer, IndexerCredential, Subscription, Token } from '../../../src/access/store/model.ts'
import { createSecretText, createToken, hashToken } from '../../../src/access/token.ts'
import { createSeededRandom } from '../../../src/core/random.ts'

/** A snapshot backed by maps that a test can change; `publish` swaps the snapshot. */
export function createAccessFixture(seed = 1) {
  const random = createSeededRandom(seed)
  const customers = new Map<string, Customer>()
  const subscriptions = new Map<string, Subscription>()
  const tokens = new Map<string, Token>()
  const credentials = new Map<string, IndexerCredential>()
  let revision = 0
  let looks = 0
  let current = freeze()

  function freeze(): AccessSnapshot {
    revision += 1
    const held = {
      customers: new Map(customers),
      subscriptions: new Map(subscriptions),
      tokens: new Map([...tokens.values()].map((token) => [token.sha256, token])),
      credentials: new Map([...credentials.values()].map((credential) => [credential.username, credential])),
    }
    const at = revision
    return {
      revision: at,
      byDigest(sha256) {
        looks += 1
        const token = held.tokens.get(sha256)
        const subscription = token && held.subscriptions.get(token.subscriptionId)
        const customer = subscription && held.customers.get(subscription.customerId)
        return token && subscription && customer ? { token, subscription, customer } : undefined
      },
      subscription: (id) => held.subscriptions.get(id),
      customer: (id) => held.customers.get(id),
      destination: () => undefined,
      destinations: () => [].values(),
      indexerCredential: (username) => held.credentials.get(username),
      node: () => undefined,
      nodesOf: () => [],
      nodes: () => [],
      counts: () => ({
        customers: held.customers.size,
        subscriptions: held.subscriptions.size,
        tokens: held.tokens.size,
      }),
      subscriptions: () => held.subscriptions.values(),
    }
  }

  function issue(subscriptionId: string): { secret: string; token: Token } {
    const { secret, sha256, last4 } = createToken(random)
    const token: Token = {
      id: `tok_${tokens.size}`,
      revision: 0,
      subscriptionId,
      sha256,
      last4,
      state: 'active',
      createdAt: 0,
      createdBy: 'test',
      notAfter: null,
    }
    tokens.set(token.id, token)
    return { secret, token }
  }

  return {
    snapshot: (): AccessSnapshot => current,
    publish: (): void => void (current = freeze()),
    /** The number of digest lookups. */
    looks: () => looks,
    issue,
    /** A customer with one subscription and its token. */
    subscribe(changes: Partial<Subscription> = {}): { subscription: Subscription; secret: string; token: Token } {
      const id = changes.id ?? `sub_${subscriptions.size}`
      const customer: Customer = {
        id: `cus_${customers.size}`,
        revision: 0,
        name: `customer-${customers.size}`,
        contact: '',
        state: 'active',
        createdAt: 0,
      }
      const subscription: Subscription = {
        id,
        revision: 0,
        customerId: customer.id,
        name: id,
        plan: 'starter',
        products: ['bundle'],
        overrides: {},
        state: 'active',
        createdAt: 0,
        validUntil: null,
        ...changes,
      }
      customers.set(customer.id, customer)
      subscriptions.set(id, subscription)
      return { subscription, ...issue(id) }
    },
    grantIndexer(subscriptionId: string): { username: string; password: string } {
      const password = createSecretText(random, 32)
      const id = `idx_${credentials.size}`
      credentials.set(id, {
        id,
        revision: 0,
        subscriptionId,
        username: `u_${credentials.size}`,
        sha256: hashToken(password),
        state: 'active',
        createdAt: 0,
      })
      return { username: `u_${credentials.size - 1}`, password }
    },
    changeCustomer: (id: string, changes: Partial<Customer>) => change(customers, id, changes),
    changeSubscription: (id: string, changes: Partial<Subscription>) => change(subscriptions, id, changes),
    changeToken: (id: string, changes: Partial<Token>) => change(tokens, id, changes),
    changeCredential: (id: string, changes: Partial<IndexerCredential>) => change(credentials, id, changes),
  }
}

export type AccessFixture = ReturnType<typeof createAccessFixture>

function change<T>(records: Map<string, T>, id: string, changes: Partial<T>): void {
  const before = records.get(id)
  if (before === undefined) throw new Error(`there is no ${id}`)
  records.set(id, { ...before, ...changes })
}
