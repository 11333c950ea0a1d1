import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openStore } from '../../src/access/store/open.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { addBilledCustomer, HOUR_MS, usageOf } from '../support/admin/billing.ts'
import { startTestSink } from '../support/admin/billing-sinks.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { type Served, serve } from '../support/process/serve.ts'
import { STORE_DEPS } from '../support/store/engines.ts'

const DAY_MS = 24 * HOUR_MS
/** Each of two customers has events for five batches of 100. */
const HOURS = 230
/** The process is killed after the sink has counted these requests and before it responds. */
const KILLED_AT = [1, 4]

test('serve is killed between batches and started again: each event counts once, and none is lost', async () => {
  await using home = await temporaryFolder()
  const state = home.file('.sluice')
  assert.equal((await sluiceHere(['customer', 'add', 'first'], { SLUICE_STATE: state })).code, 0)
  const fromMs = Math.floor(systemClock.nowMs() / DAY_MS) * DAY_MS - 12 * DAY_MS
  await using store = await openStore(
    {
      location: { engine: 'sqlite', file: `${state}/access.db` },
      audit: { file: `${state}/audit.log`, mirror: 'test', toolVersion: '0' },
      check: 'quick',
    },
    STORE_DEPS,
  )
  for (const name of ['one', 'two']) await addBilledCustomer(store, name)
  const rows = Array.from({ length: HOURS }, (_, hour) =>
    ['one', 'two'].map((name, at) => usageOf(name, fromMs + hour * HOUR_MS, hour + at + 1)),
  ).flat()
  await store.addUsage(rows, new Map())
  const ledger = rows.reduce((sum, { units }) => sum + units, 0)

  let process: Served | undefined
  let requests = 0
  const settled = Promise.withResolvers<void>()
  await using sink = await startTestSink('openmeter', {
    nowMs: systemClock.nowMs,
    fault: () => 'none',
    async onRequest() {
      if (KILLED_AT.includes(requests++)) await process?.stop('SIGKILL')
      else if (sink.sum() >= ledger) settled.resolve()
    },
  })
  const env = {
    SLUICE_BILLING__SINK: 'openmeter',
    SLUICE_BILLING__URL: sink.url,
    SLUICE_BILLING__FROM: new Date(fromMs).toISOString().slice(0, 10),
  }
  for (const _killed of KILLED_AT) {
    await using served = serve({ cwd: home.path, env })
    process = served
    assert.equal(await served.exit(), null, served.stdout())
    assert.equal(served.child.signalCode, 'SIGKILL')
    assert.ok(sink.sum() < ledger, 'killed before the end')
    // The right to send ends a minute after its process; here it ends at once.
    const { owner } = (await store.billing.state('openmeter')) ?? {}
    await store.billing.release('openmeter', owner ?? '')
  }
  await using served = serve({ cwd: home.path, env })
  process = served
  await Promise.race([settled.promise, served.exit()])
  assert.equal(await served.stop(), 0, served.stdout())

  const ids = sink.counted.map(({ id }) => id)
  assert.equal(new Set(ids).size, ids.length, 'no event counts twice')
  assert.equal(ids.length, rows.length)
  assert.equal(sink.sum(), ledger)
  assert.ok(requests > Math.ceil(rows.length / 100), 'killed batches were repeated')
  const shown = await sluiceHere(['billing', 'status', '--json'], { SLUICE_STATE: state, ...env })
  const { waiting, dead_letters } = JSON.parse(shown.stdout) as { waiting: number; dead_letters: number }
  assert.deepEqual({ waiting, dead_letters }, { waiting: 0, dead_letters: 0 })
})
