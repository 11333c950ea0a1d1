import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  addBilledCustomer,
  FROM_MS,
  HOUR_MS,
  openTestPusher,
  type TestPusher,
  usageOf,
} from '../../../test/support/admin/billing.ts'
import { SINK_FAULTS, startTestSink } from '../../../test/support/admin/billing-sinks.ts'
import { createRandom, seedsOf } from '../../../test/support/process/property.ts'
import { CONTEXT, openSqliteStore } from '../../../test/support/store/engines.ts'
import type { AccessStore } from '../../access/store/store.ts'
import { createManualClock, type ManualClock } from '../../core/clock.ts'
import { REQUEST_MS } from './http-sink.ts'
import { BILLING_SINKS, type BillingSinkName } from './options.ts'

const HISTORIES = { short: 20, full: 1000 }
const CUSTOMERS = ['one', 'two', 'three']
const GAPS = ['outage', 'suspension', 'none'] as const
const INTERFACES = ['rpc', 'ws', 'grpc'] as const
/** Passes until everything is sent, at most: for more than the hour after which a calendar adopts a jump of the wall clock. */
const PASSES_MAX = 1000

class Killed extends Error {}

type History = {
  readonly store: AccessStore
  readonly clock: ManualClock
  readonly random: (below: number) => number
  readonly kind: BillingSinkName
  /** What happens for more than a day after an attempt without a response: the sink is away, or the machine is suspended, and its monotonic clock stands still. */
  readonly gap: (typeof GAPS)[number]
}

for (const kind of BILLING_SINKS)
  test(`${kind}: histories of faults and kills, and the sums are those of the ledger`, async (t) => {
    for (const seed of seedsOf(t, HISTORIES)) {
      const random = createRandom(seed)
      const clock = createManualClock(FROM_MS)
      await using home = await openSqliteStore()
      const { store } = home
      for (const name of CUSTOMERS) {
        await addBilledCustomer(store, name)
        await store.billing.setBillingId(CONTEXT, `cus_${name}`, `billed_${name}`)
      }
      await runHistory({ store, clock, random, kind, gap: GAPS[seed % 3] ?? 'none' }, `SLUICE_SEEDS=${seed}-${seed}`)
    }
  })

async function runHistory({ store, clock, random, kind, gap }: History, title: string): Promise<void> {
  let faultsOf = 2 + random(4)
  let isAway = false
  let steps = 0
  let killAt = Number.POSITIVE_INFINITY
  await using sink = await startTestSink(kind, {
    nowMs: clock.nowMs,
    onSilence: () => clock.advance(REQUEST_MS),
    fault() {
      if (isAway) return 'error-counted'
      return random(faultsOf) === 0 ? (SINK_FAULTS[random(SINK_FAULTS.length)] ?? 'none') : 'none'
    },
  })
  const onStep = () => {
    if (++steps >= killAt) throw new Killed()
  }
  let processes = 0
  const quantities: ('units' | 'bytes')[] = ['units', 'bytes']
  const open = () =>
    openTestPusher(kind, { store, clock, owner: `process-${processes++}`, url: sink.url, onStep, quantities })
  let pusher: TestPusher = await open()

  async function pass(): Promise<void> {
    killAt = random(3) === 0 ? steps + 1 + random(8) : Number.POSITIVE_INFINITY
    try {
      clock.advance(await pusher.pass())
    } catch (error) {
      if (!(error instanceof Killed)) throw error
      pusher[Symbol.dispose]()
      pusher = await open()
    }
  }

  for (let turn = 0; turn < 12; turn++) {
    isAway = gap !== 'none' && turn === 6
    for (let used = random(4); used > 0; used--) {
      const name = CUSTOMERS[random(CUSTOMERS.length)] ?? 'one'
      // Usage of the current hour, or of an earlier one, as from a spool.
      const hour = Math.floor(clock.nowMs() / HOUR_MS) * HOUR_MS - (random(3) === 0 ? random(6) : 0) * HOUR_MS
      const units = random(5) === 0 ? -1 - random(3) : 1 + random(1000)
      const bytes = random(3) * random(2 ** 40)
      await store.addUsage([usageOf(name, Math.max(hour, FROM_MS), units, INTERFACES[random(3)], bytes)], new Map())
    }
    for (let passes = random(5); passes > 0; passes--) await pass()
    if (isAway) await pass()
    await sink.idle()
    if (isAway && gap === 'suspension') clock.setWallMs(clock.nowMs() + 30 * HOUR_MS)
    else clock.advance(isAway ? 30 * HOUR_MS : random(90) * 60_000)
  }
  isAway = false
  faultsOf = Number.MAX_SAFE_INTEGER
  clock.advance(2 * HOUR_MS)
  for (let passes = 0; passes < PASSES_MAX; passes++) {
    await pass()
    const { waiting, oldestMarkedHour } = await store.billing.summary(kind)
    const state = await store.billing.state(kind)
    const closed = Math.floor((clock.nowMs() - 300_000) / HOUR_MS) * HOUR_MS - HOUR_MS
    if (waiting === 0 && oldestMarkedHour === null && (state?.plannedHour ?? 0) >= closed) break
  }
  pusher[Symbol.dispose]()

  const used = await store.usage({})
  const { waiting, dead } = await store.billing.summary(kind)
  const letters = await store.billing.dead(kind, 1000)
  assert.equal(waiting, 0, `${title}: everything is settled`)
  const ids = sink.counted.map(({ id }) => id)
  assert.equal(new Set(ids).size, ids.length, `${title}: no event counts twice`)
  // The outcome of a dead letter is unknown: the sink has counted it, or it has not.
  for (const quantity of quantities) {
    const ledger = used.reduce((sum, row) => sum + row[quantity], 0)
    const missing = letters
      .filter((letter) => letter.quantity === quantity && !ids.includes(letter.id))
      .reduce((sum, { amount }) => sum + amount, 0)
    const counted = sink.counted
      .filter(({ name }) => name === `sluice_${quantity}`)
      .reduce((sum, { value }) => sum + value, 0)
    assert.equal(counted + missing, ledger, `${title}: the sums of ${quantity} are equal`)
  }
  if (kind !== 'stripe' || gap === 'none') assert.equal(dead, 0, `${title}: no dead letters`)
  for (const { reason } of letters) assert.match(reason ?? '', /^outcome unknown/, title)
}
