import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import { Writable } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { openStore } from '../../src/access/store/open.ts'
import type { AccessStore } from '../../src/access/store/store.ts'
import { writeLines } from '../../src/cli/commands/customers/run/usage-export.ts'
import { createManualClock } from '../../src/core/clock.ts'
import { addBilledCustomer, FROM_MS, HOUR_MS, openTestPusher, usageOf } from '../support/admin/billing.ts'
import { type SinkEvent, type SinkFault, startTestSink } from '../support/admin/billing-sinks.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { sluice, temporaryFolder } from '../support/cli/run.ts'
import { STORE_DEPS } from '../support/store/engines.ts'

type Status = {
  sink: string | null
  state: string
  waiting: number
  dead_letters: number
  dead: { id: string; amount: number; reason: string; outcome_unknown: boolean }[]
}

describe('the commands about billing', () => {
  let home: Awaited<ReturnType<typeof temporaryFolder>>
  let store: AccessStore
  const env = () => ({ SLUICE_STATE: home.file('.sluice') })
  const run = (...words: string[]) => sluiceHere(words, env())
  const must = async (...words: string[]) => {
    const result = await run(...words)
    assert.equal(result.code, 0, `${words.join(' ')}: ${result.stderr}`)
    return result
  }
  const status = async (sink: string) =>
    JSON.parse((await must('billing', 'status', '--sink', sink, '--json')).stdout) as Status
  const actions = async () =>
    (await Array.fromAsync(store.auditLines(1))).map((line) => (JSON.parse(line) as { action: string }).action)

  before(async () => {
    home = await temporaryFolder()
    await must('customer', 'add', 'first')
    const file = home.file('.sluice/access.db')
    const audit = { file: home.file('.sluice/audit.log'), mirror: 'test', toolVersion: '0' }
    store = await openStore({ location: { engine: 'sqlite', file }, audit, check: 'quick' }, STORE_DEPS)
    for (const name of ['one', 'two']) await addBilledCustomer(store, name)
  })
  after(async () => {
    await store[Symbol.asyncDispose]()
    await home[Symbol.asyncDispose]()
  })

  test('without a billing system status says so, and a change names what to set', async () => {
    const shown = await must('billing', 'status')
    assert.match(shown.stderr, /no billing system is configured: set billing\.sink/)
    assert.deepEqual(JSON.parse((await must('billing', 'status', '--json')).stdout), { sink: null })
    for (const verb of ['pause', 'resume', 'retry']) {
      const refused = await run('billing', verb)
      assert.equal(refused.code, 2, verb)
      assert.match(refused.stderr, /no billing system is configured[\s\S]*--sink/)
    }
    const never = await run('billing', 'pause', '--sink', 'lago')
    assert.notEqual(never.code, 0)
    assert.match(never.stderr, /nothing was ever sent to lago/)
    assert.equal((await status('lago')).state, 'idle')
  })

  test('pause stops sending, resume continues, retry sends a dead letter with its id; each has an audit line', async () => {
    const clock = createManualClock(FROM_MS)
    let isRefusing = true
    const refuse = ({ subject }: SinkEvent) =>
      isRefusing && subject === 'sub_two' ? 'no such subscription' : undefined
    await using sink = await startTestSink('lago', { nowMs: clock.nowMs, fault: () => 'none', refuse })
    using pusher = await openTestPusher('lago', { store, clock, owner: 'a', url: sink.url })
    await store.addUsage([usageOf('one', FROM_MS, 10), usageOf('two', FROM_MS, 2)], new Map())
    clock.advance(2 * HOUR_MS)

    await must('billing', 'pause', '--sink', 'lago', '--dry-run')
    assert.equal((await status('lago')).state, 'sending', 'a dry run changes nothing')
    await must('billing', 'pause', '--sink', 'lago')
    assert.equal((await status('lago')).state, 'paused')
    for (let passes = 0; passes < 3; passes++) await pusher.pass()
    assert.equal(sink.requests(), 0)
    await must('billing', 'resume', '--sink', 'lago')
    for (let passes = 0; passes < 3; passes++) await pusher.pass()
    assert.equal(sink.sum(), 10)

    const { dead, dead_letters } = await status('lago')
    assert.equal(dead_letters, 1)
    assert.match(dead[0]?.reason ?? '', /no such subscription/)
    const text = await must('billing', 'status', '--sink', 'lago')
    assert.match(text.stdout, /dead letters +1/)
    assert.match(text.stderr, new RegExp(`${dead[0]?.id} sub_two .* 2 units: .*no such subscription`))
    await must('billing', 'retry', '--sink', 'lago', '--dry-run')
    assert.equal((await status('lago')).dead_letters, 1, 'a dry run changes nothing')
    isRefusing = false
    assert.match((await must('billing', 'retry', '--sink', 'lago')).stderr, /1 events wait to be sent again/)
    assert.equal((await status('lago')).waiting, 1)
    await pusher.pass()
    assert.equal(sink.sum(), 12)
    assert.equal(sink.counted[1]?.id, dead[0]?.id)

    const again = await run('billing', 'retry', dead[0]?.id ?? '', '--sink', 'lago')
    assert.match(again.stderr, /is sent, not a dead letter/)
    const unknown = await run('billing', 'retry', 'no-such-event', '--sink', 'lago')
    assert.notEqual(unknown.code, 0)
    const made = (await actions()).filter((action) => action.startsWith('billing.'))
    assert.deepEqual(made, ['billing.pause', 'billing.resume', 'billing.retry'])
  })

  test('retry leaves an event whose outcome is unknown, until the operator decides', async () => {
    const clock = createManualClock(FROM_MS)
    let fault: SinkFault = 'error-counted'
    await using sink = await startTestSink('stripe', { nowMs: clock.nowMs, fault: () => fault })
    using pusher = await openTestPusher('stripe', { store, clock, owner: 'a', url: sink.url })
    await must('customer', 'billing-id', 'one', 'cus_AtStripe')
    clock.advance(2 * HOUR_MS)
    for (let passes = 0; passes < 3; passes++) await pusher.pass()
    fault = 'none'
    clock.advance(25 * HOUR_MS)
    for (let passes = 0; passes < 3; passes++) await pusher.pass()
    assert.deepEqual(
      sink.counted.map(({ subject, value }) => [subject, value]),
      [['cus_AtStripe', 10]],
    )
    assert.equal((await status('stripe')).dead[0]?.outcome_unknown, true)
    const left = await must('billing', 'retry', '--sink', 'stripe')
    assert.match(left.stderr, /0 events wait[\s\S]*1 events stay: their outcome is unknown/)
    await pusher.pass()
    assert.equal(sink.sum(), 10, 'not counted twice')
    assert.match((await must('billing', 'retry', '--sink', 'stripe', '--mark-sent')).stderr, /1 events count as sent/)
    assert.equal((await status('stripe')).dead_letters, 0)
    await pusher.pass()
    assert.equal(sink.sum(), 10)
  })

  test('customer billing-id sets, replaces and removes the id, and refuses one that is no id', async () => {
    const idOf = async () => (await store.billing.billingIds(['cus_two'])).get('cus_two')
    await must('customer', 'billing-id', 'two', 'x-1', '--dry-run')
    assert.equal(await idOf(), undefined)
    const set = await must('customer', 'billing-id', 'two', 'x-1', '--json')
    assert.deepEqual(JSON.parse(set.stdout), { customer: 'two', customer_id: 'cus_two', billing_id: 'x-1' })
    await must('customer', 'billing-id', 'cus_two', 'x-2')
    assert.equal(await idOf(), 'x-2')
    for (const wrong of ['with space', 'ü', 'x'.repeat(201)]) {
      const refused = await run('customer', 'billing-id', 'two', wrong)
      assert.notEqual(refused.code, 0)
      assert.match(refused.stderr, /1 to 200 printable characters without spaces/)
    }
    assert.equal(await idOf(), 'x-2')
    await must('customer', 'billing-id', 'two', '')
    assert.equal(await idOf(), undefined)
    assert.equal((await run('customer', 'billing-id', 'nobody', 'x')).code, 1)
  })

  test('usage export has the sums of the ledger, in both formats, on standard output and in a new file', async () => {
    const csv = (await must('usage', 'export', '--month', '2027-01')).stdout
    assert.deepEqual(csv.split('\n'), [
      'customer,customer_id,subscription,subscription_id,day,interface,method,calls,units,refused,bytes',
      'one,cus_one,one,sub_one,2027-01-10,rpc,,1,10,0,0',
      'two,cus_two,two,sub_two,2027-01-10,rpc,,1,2,0,0',
      '',
    ])
    const lines = (await must('usage', 'export', '--month', '2027-01', '--customer', 'two', '--format', 'jsonl')).stdout
    assert.deepEqual(
      lines
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { units: number }).units),
      [2],
    )
    const out = home.file('usage.csv')
    await must('usage', 'export', '--month', '2027-01', '--out', out)
    assert.equal(readFileSync(out, 'utf8'), csv)
    assert.equal(statSync(out).mode & 0o777, 0o600)
    const again = await run('usage', 'export', '--month', '2027-01', '--out', out)
    assert.notEqual(again.code, 0, 'an existing file is not replaced')
    assert.equal(readFileSync(out, 'utf8'), csv)
    assert.match((await run('usage', 'export', '--month', '2027-13')).stderr, /is not a month/)
    assert.match((await run('usage', 'export', '--month', '2027-01', '--customer', 'tow')).stderr, /did you mean "two"/)
  })

  test('an export reads the store as fast as standard output is read, and a closed reader is no error', async () => {
    const whole = await sluice(['usage', 'export', '--month', '2027-01'], { env: env() })
    assert.deepEqual([whole.code, whole.stdout.split('\n').length], [0, 4])

    let made = 0
    async function* endless(): AsyncGenerator<string> {
      for (; made < 10_000; made++) yield `${'x'.repeat(1000)}\n`
    }
    const first = Promise.withResolvers<(error?: Error) => void>()
    const stdout = new Writable({ write: (_chunk, _encoding, done) => first.resolve(done) })
    const writing = writeLines(endless(), stdout)
    const done = await first.promise
    for (let turns = 0; turns < 200; turns++) await nextTurn()
    assert.ok(made < 200, `${made} lines were read ahead of the reader`)
    done(Object.assign(new Error('closed'), { code: 'EPIPE' }))
    await writing
    assert.ok(made < 200)
  })
})
