import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { addAdmin } from '../../src/access/provisioning/admins.ts'
import { addCustomer } from '../../src/access/provisioning/customers.ts'
import { setDestination } from '../../src/access/provisioning/destinations.ts'
import { addNote, recordRefund } from '../../src/access/provisioning/notes.ts'
import { createSubscription, suspendSubscription } from '../../src/access/provisioning/subscriptions.ts'
import type { UsageInterface, UsageRow } from '../../src/access/store/model.ts'
import { openStore } from '../../src/access/store/open.ts'
import { dayStart } from '../../src/contract/dates.ts'
import type { Limits } from '../../src/contract/limits.ts'
import type { ProductKey } from '../../src/contract/products.ts'
import { openStateFolder } from '../../src/platform/files/state-folder.ts'
import { machineId } from '../../src/processes/compose/process/machine-id.ts'
import { VERSION } from '../../src/processes/compose/process/version.ts'
import { startTestSink } from '../support/admin/billing-sinks.ts'
import { sluice, temporaryFolder } from '../support/cli/run.ts'
import { type Served, serve } from '../support/process/serve.ts'
import { CONTEXT, STORE_DEPS } from '../support/store/engines.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const DAYS = 30
const CUSTOMERS_DAYS = 75
/** The last days have usage in each hour. */
const HOURLY_DAYS = 3
const CITIES = ['lisbon', 'oslo', 'tallinn', 'zurich', 'lagos', 'osaka', 'quito', 'tunis']
const PLANS = ['starter', 'build', 'grow', 'professional']
/** Share of the units of the month that borealis-prod has used. */
export const NEAR_SHARE = 0.86
const METHODS: Readonly<Record<string, readonly string[]>> = {
  rpc: ['getAccountInfo', 'getMultipleAccounts', 'sendTransaction', 'getSlot'],
  ws: ['accountSubscribe', 'logsSubscribe'],
  grpc: ['Subscribe'],
}
const INTERFACES: readonly UsageInterface[] = ['rpc', 'ws', 'grpc']

export type ConsoleProcess = AsyncDisposable & {
  readonly running: Served
  /** Where the browser finds the console. */
  readonly url: string
  /** The token of `sluice admin add ann --role owner`. */
  readonly owner: string
  /** The token of an administrator that only reads; empty without records. */
  readonly reader: string
  /** The token of an administrator of the role billing. */
  readonly biller: string
  /** Tokens of the customers, by the name of their subscription. */
  readonly tokens: ReadonlyMap<string, string>
  /** Units that acme-prod used yesterday. */
  readonly unitsYesterday: number
}

type Filled = Pick<ConsoleProcess, 'reader' | 'biller' | 'tokens' | 'unitsYesterday'> & {
  /** The id of the subscription that the billing system does not know. */
  readonly unbilled: string
}
const NOTHING: Filled = { reader: '', biller: '', tokens: new Map(), unitsYesterday: 0, unbilled: '' }

/** Prices of two plans, and a billing system that gets the usage since yesterday. */
function configOf(url: string, nowMs: number): string {
  const from = new Date(nowMs - DAY_MS).toISOString().slice(0, 10)
  const price = (plan: string, month: number) =>
    `[billing.prices.${plan}]\ncurrency = "EUR"\nperMonth = "${month}"\nperMillionUnits = "0.25"\n`
  return `[billing]\nsink = "lago"\nurl = "${url}"\nfrom = "${from}"\n${price('grow', 499)}${price('professional', 999)}`
}

/** A real `sluice serve` with the first administrator of the command line; `isFilled` puts customers and their usage into its store first. */
export async function startConsoleProcess({ isFilled = false, customers = 0 } = {}): Promise<ConsoleProcess> {
  const home = await temporaryFolder()
  const refused = new Set<string>()
  const sink = await startTestSink('lago', {
    nowMs: STORE_DEPS.clock.nowMs,
    fault: () => 'none',
    refuse: ({ subject }) => (refused.has(subject) ? 'no subscription with this external id' : undefined),
  })
  if (isFilled) await writeFile(home.file('sluice.toml'), configOf(sink.url, STORE_DEPS.clock.nowMs()))
  const words = ['admin', 'add', 'ann', '--role', 'owner', '--create-store', '--print-token', '--state', '.sluice']
  const added = await sluice(words, { cwd: home.path })
  assert.equal(added.code, 0, added.stderr)
  const filled = isFilled ? await fill(home.file('.sluice'), customers) : NOTHING
  if (filled.unbilled !== '') refused.add(filled.unbilled)
  const chain = { SLUICE_LOCALNET__ENABLED: undefined, SLUICE_EXECUTION__SIMULATED: 'true' }
  const running = serve({ cwd: home.path, workers: 1, args: ['--no-demo'], env: isFilled ? chain : {} })
  const address = await running.address('admin')
  if (isFilled) await running.line(/"msg":"started"/)
  return {
    running,
    url: `http://${address}/`,
    owner: added.stdout.trim(),
    ...filled,
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]()
      await sink[Symbol.asyncDispose]()
      await home[Symbol.asyncDispose]()
    },
  }
}

/** Five customers of different kinds, and thirty days of usage that ended a moment ago. */
async function fill(folder: string, customers: number): Promise<Filled> {
  const state = await openStateFolder(folder)
  const audit = { file: state.file('audit.log'), mirror: await machineId(state), toolVersion: VERSION }
  const location = { engine: 'sqlite', file: state.file('access.db') } as const
  await using store = await openStore({ location, audit, check: 'quick' }, STORE_DEPS)
  const { random } = STORE_DEPS
  const nowMs = STORE_DEPS.clock.nowMs()
  // Customers of some weeks, so that the last month has an invoice.
  const on = { store, random, nowMs: nowMs - CUSTOMERS_DAYS * DAY_MS, actor: CONTEXT.actor }
  const tokens = new Map<string, string>()
  const ids: string[] = []
  const subscribe = async (
    customer: string,
    name: string,
    more: { plan?: string; products?: ProductKey[]; days?: number; overrides?: Partial<Limits> } = {},
  ): Promise<string> => {
    const { plan = 'grow', products = ['bundle'], days, overrides = {} } = more
    const validUntil = days === undefined ? null : Math.ceil(nowMs / DAY_MS + days) * DAY_MS
    const created = await createSubscription(on, { customer, name, plan, products, overrides, validUntil })
    tokens.set(name, created.token?.secret ?? '')
    ids.push(created.subscription.id)
    return created.subscription.id
  }
  for (const name of ['acme', 'borealis', 'cobalt-labs', 'delta-desk', 'ember-pay'])
    await addCustomer(on, { name, contact: `ops@${name}.example` })
  await subscribe('acme', 'acme-prod', { products: ['bundle', 'shreds-raw'] })
  const ofThisMonth = unitsOf(usageOf(['acme', 'borealis'], nowMs), 'borealis', monthStart(nowMs))
  await subscribe('borealis', 'borealis-prod', { overrides: { unitsPerMonth: Math.round(ofThisMonth / NEAR_SHARE) } })
  await subscribe('cobalt-labs', 'cobalt-labs-prod', { plan: 'professional', products: ['bundle', 'indexer'] })
  await subscribe('delta-desk', 'delta-desk-prod', { days: 6 })
  await subscribe('acme', 'acme-test', { plan: 'starter', days: 12 })
  await suspendSubscription(on, { subscription: 'acme-test' })
  await setDestination(on, { subscription: 'acme-prod', destination: '127.0.0.1:20000', vouched: true })
  await addNote(on, { subject: 'acme', text: 'Wants an invoice per quarter.' })
  await addNote(on, { subject: 'acme-prod', text: 'Moves to two regions in spring.' })
  const refund = { amount: '120.00', currency: 'EUR', reason: 'Outage of 3 November' }
  await recordRefund(on, { subscription: 'acme-prod', ...refund })
  for (let at = 1; at <= customers; at++) {
    const name = `${CITIES[at % CITIES.length]}-${String(at).padStart(3, '0')}`
    await addCustomer(on, { name, contact: `billing@${name}.example` })
    const plan = PLANS[at % PLANS.length] ?? 'grow'
    await subscribe(name, `${name}-main`, { plan, ...(at % 17 === 0 ? { days: at % 40 } : {}) })
  }
  const used = usageOf(ids.toSpliced(4, 1), nowMs)
  await store.addUsage(used, new Map())
  const { secret } = await addAdmin(on, { name: 'ron', role: 'read-only', expiresMs: null })
  const biller = await addAdmin(on, { name: 'bea', role: 'billing', expiresMs: null })
  const today = dayStart(nowMs)
  return {
    ...{ reader: secret, biller: biller.secret, tokens, unbilled: ids[3] ?? '' },
    unitsYesterday: unitsOf(used, ids[0] ?? '', today - DAY_MS, today),
  }
}

/** Usage of each day, the first subscription most: at noon, of the last days in each hour that has begun. */
function usageOf(ids: readonly string[], nowMs: number): UsageRow[] {
  const today = dayStart(nowMs)
  return ids.flatMap((subscriptionId, at) =>
    Array.from({ length: DAYS }, (_, ago) => today - ago * DAY_MS).flatMap((day, ago) =>
      INTERFACES.slice(0, 3 - (at % 3)).flatMap((name, kind) => {
        const calls = Math.round((24_000 + 5000 * ((ago * 7) % 11)) / (at + 1) / (kind + 1))
        const hours = ago < HOURLY_DAYS ? Array.from({ length: 24 }, (_, hour) => hour) : [12]
        return hours
          .map((hour) => ({ hour: day + hour * HOUR_MS, calls: (calls * shareOfHour(hour)) / sumOfShares(hours) }))
          .filter(({ hour }) => hour <= nowMs)
          .map((used) => rowOf(subscriptionId, name, used))
      }),
    ),
  )
}

function rowOf(subscriptionId: string, name: UsageInterface, used: { hour: number; calls: number }): UsageRow {
  const all = METHODS[name] ?? []
  const of = (share: number) => ({
    calls: Math.round(used.calls * share),
    units: Math.round(used.calls * share * 2),
    refused: Math.round((used.calls * share) / 400),
  })
  const methods = Object.fromEntries(all.map((method, rank) => [method, of(shareOf(rank, all.length))]))
  const counts = Object.values(methods).reduce((sum, one) => ({
    calls: sum.calls + one.calls,
    units: sum.units + one.units,
    refused: sum.refused + one.refused,
  }))
  return { subscriptionId, hour: used.hour, interface: name, ...counts, bytes: counts.calls * 700, methods }
}

/** Most in the afternoon. */
function shareOfHour(hour: number): number {
  return 2 + Math.sin(((hour - 9) / 24) * 2 * Math.PI) + ((hour * 7) % 5) / 10
}

function sumOfShares(hours: readonly number[]): number {
  return hours.reduce((sum, hour) => sum + shareOfHour(hour), 0)
}

function unitsOf(rows: readonly UsageRow[], id: string, fromMs: number, toMs = Number.POSITIVE_INFINITY): number {
  const counted = rows.filter(({ subscriptionId, hour }) => subscriptionId === id && hour >= fromMs && hour < toMs)
  return counted.reduce((sum, { units }) => sum + units, 0)
}

function monthStart(nowMs: number): number {
  const now = new Date(nowMs)
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1)
}

/** 4/10, 3/10, 2/10, 1/10 of four. */
function shareOf(rank: number, count: number): number {
  return (count - rank) / ((count * (count + 1)) / 2)
}
