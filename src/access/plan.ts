import assert from 'node:assert/strict'
import { BURST_SECONDS, type Limits } from '../contract/limits.ts'
import { RPC_METHODS, rpcMethod, SEND_METHOD } from '../contract/rpc-methods.ts'
import { setBounded } from '../core/bounded-map.ts'
import { ServiceError } from '../core/error.ts'

export type Plan = { readonly name: string; readonly limits: Limits }

/** Plans by the name a subscription gives. */
export type Plans = Readonly<Record<string, Limits>>

/** Subscriptions of one WebSocket connection; the total of a plan must be reachable with its connections. */
export const WS_SUBSCRIPTIONS_PER_CONNECTION_MAX = 1000

/** Agave accepts 50 KiB; a `sendTransaction` in base64 needs about 1.7 kB. */
export const REQUEST_BYTES_DEFAULT = 65_536
export const BATCH_ITEMS_DEFAULT = 100

const COMMON = {
  unitsPerMonth: null,
  requestBytes: REQUEST_BYTES_DEFAULT,
  batchItems: BATCH_ITEMS_DEFAULT,
  grpcKinds: null,
  grpcBlockedOwners: [],
  grpcResume: false,
  methods: {},
} satisfies Partial<Limits>

/** The five plans that exist without any configuration. Each has a gRPC stream: one token works on all three interfaces. */
export const BUILT_IN_PLANS = {
  starter: {
    ...COMMON,
    unitsPerSecond: 15,
    sendsPerSecond: 5,
    wsConnections: 10,
    wsSubscriptions: 1000,
    grpcStreams: 1,
    grpcAccountsPerStream: 25,
  },
  focus: {
    ...COMMON,
    unitsPerSecond: 25,
    sendsPerSecond: 10,
    wsConnections: 20,
    wsSubscriptions: 5000,
    grpcStreams: 1,
    grpcAccountsPerStream: 50,
  },
  build: {
    ...COMMON,
    unitsPerSecond: 200,
    sendsPerSecond: 30,
    wsConnections: 30,
    wsSubscriptions: 5000,
    grpcStreams: 10,
    grpcAccountsPerStream: 500,
  },
  grow: {
    ...COMMON,
    unitsPerSecond: 300,
    sendsPerSecond: 50,
    wsConnections: 40,
    wsSubscriptions: 10_000,
    grpcStreams: 20,
    grpcAccountsPerStream: 1200,
  },
  professional: {
    ...COMMON,
    unitsPerSecond: 500,
    sendsPerSecond: 100,
    wsConnections: 70,
    wsSubscriptions: 25_000,
    grpcStreams: 50,
    grpcAccountsPerStream: 2000,
  },
} as const satisfies Record<string, Limits>

/** The cost of a method under these limits: their own value, otherwise that of the contract. */
export function methodCost(limits: Limits, method: string): number {
  const own = Object.hasOwn(limits.methods, method) ? limits.methods[method]?.cost : undefined
  return own ?? rpcMethod(method).cost
}

/** The highest cost of a single call: no bucket is smaller, or that call would always be refused. */
export function highestCost(limits: Limits): number {
  let highest = 1
  for (const method of [...Object.keys(RPC_METHODS), ...Object.keys(limits.methods)]) {
    highest = Math.max(highest, methodCost(limits, method))
  }
  return highest
}

/** Contradictions between the limits of a plan, each with the limit concerned. */
export function findPlanFaults(limits: Limits): { limit: keyof Limits; message: string }[] {
  const faults: { limit: keyof Limits; message: string }[] = []
  const add = (limit: keyof Limits, message: string) => void faults.push({ limit, message })
  const { unitsPerSecond, sendsPerSecond, unitsPerMonth, wsConnections, wsSubscriptions, batchItems } = limits

  if (limits.wsConnections === 0) add('wsConnections', 'is 0, but the token has to work on WebSocket too')
  if (limits.grpcStreams === 0) add('grpcStreams', 'is 0, but the token has to work on gRPC too')
  if (limits.grpcAccountsPerStream === 0) add('grpcAccountsPerStream', 'is 0, so no account stream could be opened')
  if (limits.grpcKinds?.length === 0) add('grpcKinds', 'is empty, so no stream could be opened')
  if (wsConnections !== null) {
    const reachable = wsConnections * WS_SUBSCRIPTIONS_PER_CONNECTION_MAX
    if (wsSubscriptions !== null && wsSubscriptions > reachable) {
      add('wsSubscriptions', `is ${wsSubscriptions}, but ${wsConnections} connections can hold only ${reachable}`)
    }
  }
  if (unitsPerSecond !== null) {
    const sendCost = methodCost(limits, SEND_METHOD)
    if (sendsPerSecond !== null && sendsPerSecond * sendCost > unitsPerSecond) {
      add(
        'sendsPerSecond',
        `is ${sendsPerSecond} at ${sendCost} units each, more than ${unitsPerSecond} units a second allow`,
      )
    }
    for (const [method, { perSecond }] of Object.entries(limits.methods)) {
      const cost = methodCost(limits, method)
      if (perSecond !== undefined && perSecond * cost > unitsPerSecond) {
        add(
          'methods',
          `gives ${method} ${perSecond} a second at ${cost} units each, more than ${unitsPerSecond} units allow`,
        )
      }
    }
    const bucketUnits = Math.max(unitsPerSecond * BURST_SECONDS, highestCost(limits))
    if (batchItems > bucketUnits) {
      add('batchItems', `is ${batchItems}, but the bucket holds only ${bucketUnits} units`)
    }
    if (unitsPerMonth !== null && unitsPerMonth < unitsPerSecond) {
      add('unitsPerMonth', `is ${unitsPerMonth}, less than one second of ${unitsPerSecond}`)
    }
  }
  return faults
}

/** Cached sets of overridden limits; beyond it the oldest is removed. */
const SHARED_MAX = 4096

export type PlanTable = {
  list(): readonly Plan[]
  has(name: string): boolean
  /** Throws `not-found` with the names of the existing plans. */
  get(name: string): Plan
  /** The limits of a subscription. Equal limits are the same object, so thousands of subscriptions on five plans hold five objects. */
  limitsOf(plan: string, overrides: Partial<Limits>): Limits
}

/** A subscription whose plan is not configured any more gets the smallest plan; `reported-plans.ts` reports it to the operator. */
export function createPlanTable(limitsByName: Plans): PlanTable {
  const plans = new Map(Object.entries(limitsByName).map(([name, limits]) => [name, { name, limits }]))
  assert(plans.size > 0, 'there is no plan')
  const smallest = [...plans.values()].reduce((least, plan) => (rateOf(plan) < rateOf(least) ? plan : least))
  const shared = new Map<string, Limits>()
  return {
    list: () => [...plans.values()],
    has: (name) => plans.has(name),
    get(name) {
      const plan = plans.get(name)
      if (plan !== undefined) return plan
      throw new ServiceError('not-found', `there is no plan "${name}": there are ${[...plans.keys()].join(', ')}`, {
        fix: 'See what each allows with: sluice plan list',
      })
    },
    limitsOf(name, overrides) {
      const base = (plans.get(name) ?? smallest).limits
      const keys = Object.keys(overrides) as (keyof Limits)[]
      if (keys.length === 0) return base
      const key = JSON.stringify([name, keys.toSorted().map((limit) => [limit, overrides[limit]])])
      const known = shared.get(key)
      if (known !== undefined) return known
      const limits: Limits = { ...base, ...overrides, methods: { ...base.methods, ...overrides.methods } }
      setBounded(shared, key, limits, SHARED_MAX)
      return limits
    },
  }
}

function rateOf({ limits }: Plan): number {
  return limits.unitsPerSecond ?? Number.POSITIVE_INFINITY
}
