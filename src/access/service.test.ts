import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { startRedis } from '../../test/support/machine/redis.ts'
import { isFull } from '../../test/support/process/property.ts'
import { openAccessFolder } from '../../test/support/store/access-folder.ts'
import { SECOND_MS } from '../../test/support/store/engines.ts'
import { systemClock } from '../platform/process/clock.ts'
import { until } from '../platform/process/test-wait.ts'
import type { Call } from './admission.ts'
import type { Caller, Refused } from './callers.ts'
import { BUILT_IN_PLANS } from './plan.ts'
import { cancelSubscription, limitSubscription } from './provisioning/subscriptions.ts'
import { revokeTokens, rotateToken } from './provisioning/tokens.ts'

const RPC: Call = { interface: 'rpc', method: 'getSlot' }
const HEAVY: Call = { interface: 'ws', method: 'getProgramAccounts' }

const CHILD = join(import.meta.dirname, '../../test/support/access/process.ts')
/** A second, plus delays of timers and the disk on a machine that is busy with other tests. */
const LOST_MS = isFull ? 1500 : 3000

function reasonOf(outcome: Caller | Refused): string {
  return outcome.ok ? 'ok' : outcome.reason
}

function must(outcome: Caller | Refused): Caller {
  assert.ok(outcome.ok)
  return outcome
}

describe('access', () => {
  test('a token issued while the process runs is valid within a second, and invalid within a second of its revocation', async () => {
    await using folder = await openAccessFolder()
    await using running = await folder.start()
    const { secret } = await folder.subscribe('first')
    await until('the new token', () => running.enter(secret).ok, SECOND_MS)
    const rotated = await rotateToken(folder.on(), { subscription: 'first', graceMs: 0 })
    await until('the successor', () => running.enter(rotated.secret).ok, SECOND_MS)
    assert.equal(reasonOf(running.enter(secret)), 'revoked')

    let changes = 0
    using _listening = running.access.onChange(() => (changes += 1))
    const caller = must(running.enter(rotated.secret))
    await revokeTokens(folder.on(), { subscription: 'first' })
    await until('open streams to be notified', () => changes > 0, SECOND_MS)
    const now = systemClock.nowMs()
    assert.equal(reasonOf(running.access.renew(caller.tokenSha256, 'bundle', now)), 'revoked')
    const outcome = running.access.admit(caller, RPC)
    assert.equal(outcome.ok || outcome.reason, 'revoked')
  })

  test('a plan that is not configured is reported while a subscription that is used has it', async () => {
    await using folder = await openAccessFolder()
    const first = await folder.subscribe('first', 'gone')
    const second = await folder.subscribe('second', 'gone')
    await using running = await folder.start()
    const { access, health, enter } = running
    // As the admin API and the console show a subscription, cancelled ones too.
    assert.equal(access.plans().limitsOf('gone', {}).unitsPerSecond, 15)
    assert.equal(health.get('plans'), undefined)
    assert.equal(must(enter(first.secret)).limits.unitsPerSecond, 15)
    assert.match(health.get('plans') ?? '', /have the smallest plan: gone$/)

    await limitSubscription(folder.on(), { subscription: 'first', overrides: {}, plan: 'build' })
    await until('the change', () => access.snapshot().subscription(first.id)?.plan === 'build', SECOND_MS)
    assert.equal(health.get('plans'), undefined)
    must(enter(first.secret))
    assert.equal(health.get('plans'), undefined)
    must(enter(second.secret))
    assert.match(health.get('plans') ?? '', /gone$/)
    await cancelSubscription(folder.on(), { subscription: 'second' })
    await until('the end', () => health.get('plans') === undefined, SECOND_MS)
  })

  test('usage is in the store when the process has closed, and the month continues from it', async () => {
    await using folder = await openAccessFolder()
    const { secret, id, tokenId } = await folder.subscribe('first')
    const first = await folder.start()
    const caller = must(first.enter(secret))
    assert.equal(first.access.admit(caller, HEAVY).ok, true)
    assert.equal(first.access.admit(caller, RPC).ok, true)
    await first.close()

    await using second = await folder.start()
    const rows = await second.store.usage({ subscriptionId: id })
    assert.deepEqual(
      rows.map((row) => `${row.interface} ${row.calls} ${row.units}`).toSorted((a, b) => a.localeCompare(b)),
      ['rpc 1 1', 'ws 1 30'],
    )
    assert.equal(second.access.quota(must(second.enter(secret))).month.used, 31)
    const lastUsed = await second.store.lastUsed(tokenId)
    assert.ok(lastUsed !== undefined && lastUsed % 60_000 === 0 && systemClock.nowMs() - lastUsed < 120_000)
  })

  test('usage waits while another process writes to the store; no call is refused and no usage is lost', async () => {
    await using folder = await openAccessFolder()
    const { secret, id } = await folder.subscribe('first', 'professional')
    await using running = await folder.start()
    const caller = must(running.enter(secret))
    const held = Promise.withResolvers<void>()
    const writing = folder.on().store.change(folder.on(), async () => {
      await held.promise
      return { audit: { action: 'test.wait', subjects: [] }, result: undefined }
    })
    await until('a flush to find the store busy', () => {
      assert.equal(running.access.admit(caller, RPC).ok, true)
      return running.access.usage.state().failing?.code === 'store-locked'
    })
    held.resolve()
    await writing
    await until('the next flush', () => running.access.usage.state().failing === undefined)
    await running.access.usage.flush()
    // One row, or two where the hour changed meanwhile.
    const rows = await running.store.usage({ subscriptionId: id })
    assert.equal(
      rows.reduce((sum, { calls }) => sum + calls, 0),
      running.access.quota(caller).month.used,
    )
    assert.equal(running.access.usage.state().lostRows, 0)
  })

  test('a kill loses at most a second of usage', async () => {
    await using folder = await openAccessFolder()
    const { secret, id } = await folder.subscribe('first', 'professional')
    const child = spawn(process.execPath, [CHILD, folder.folder], { stdio: ['pipe', 'pipe', 'inherit'] })
    // Not its exit, which may be reported before its last lines are read.
    const gone = new Promise((resolve) => child.once('close', resolve))
    child.stdin.write(`${secret}\n`)
    let text = ''
    child.stdout.on('data', (bytes: Buffer) => (text += bytes.toString('ascii')))
    const reported = () =>
      text
        .slice(0, text.lastIndexOf('\n'))
        .split('\n')
        .map((line) => line.split(' ').map(Number))
    const ranMs = () => (reported().at(-1)?.[0] ?? 0) - (reported()[0]?.[0] ?? 0)
    await until('a few flushes', () => ranMs() > LOST_MS + 500, 60_000)
    child.kill('SIGKILL')
    await gone
    const [killedAtMs = 0, admitted = 0] = reported().at(-1) ?? []
    const [, before = 0] = reported().findLast(([atMs = 0]) => atMs <= killedAtMs - LOST_MS) ?? []
    const [row] = await folder.on().store.usage({ subscriptionId: id })
    assert.ok(row !== undefined && before > 0)
    assert.ok(row.calls >= before, `${row.calls} written, ${before} admitted a second before the end`)
    assert.ok(row.calls <= admitted + 10, `${row.calls} written of ${admitted}`)
  })

  test('no file of the state folder contains a token, before or after its use', async () => {
    await using folder = await openAccessFolder()
    const { secret } = await folder.subscribe('first')
    const running = await folder.start()
    const caller = must(running.enter(secret))
    running.access.admit(caller, RPC)
    const { ticket } = running.access.issueTicket(caller, systemClock.nowMs())
    const text = await running.registry.text()
    await running.close()
    const files = await readdir(folder.folder)
    assert.ok(files.includes('access.db'))
    for (const name of files) {
      const bytes = await readFile(join(folder.folder, name))
      assert.equal(bytes.includes(secret) || bytes.includes(secret.slice(4, 36)), false, name)
    }
    assert.equal(text.includes(secret) || ticket.includes(secret), false)
  })

  test('a ticket of one process is valid in another, and ends with its token', async () => {
    await using folder = await openAccessFolder()
    const { secret, id } = await folder.subscribe('first')
    await using a = await folder.start()
    await using b = await folder.start()
    const now = systemClock.nowMs()
    const { ticket, expiresAtMs } = a.access.issueTicket(must(a.enter(secret)), now)
    assert.equal(must(b.access.authenticateTicket(ticket, 'bundle', now)).subscription.id, id)
    assert.equal(reasonOf(b.access.authenticateTicket(ticket, 'indexer', now)), 'not-in-plan')
    assert.equal(reasonOf(b.access.authenticateTicket(ticket, 'bundle', expiresAtMs + 1)), 'expired')
    assert.equal(reasonOf(b.access.authenticateTicket('wst_nonsense', 'bundle', now)), 'malformed')
    assert.equal(reasonOf(b.access.authenticateTicket(secret, 'bundle', now)), 'malformed')
    await revokeTokens(folder.on(), { subscription: 'first' })
    await until('the end of the token', () => !b.enter(secret).ok, SECOND_MS)
    assert.equal(reasonOf(b.access.authenticateTicket(ticket, 'bundle', now)), 'revoked')
  })

  test('a refused permit is counted under its limit', async () => {
    await using folder = await openAccessFolder()
    const { secret, id } = await folder.subscribe('first')
    await using running = await folder.start()
    const { limits } = must(running.enter(secret))
    const permit = running.access.permits.acquire(id, 'grpcStreams', limits)
    assert.ok(permit.ok)
    assert.equal(running.registry.value('sluice_access_grpc_streams'), 1)
    assert.equal(running.access.permits.acquire(id, 'grpcStreams', limits).ok, false)
    assert.equal(running.registry.value('sluice_access_limited_total', { limit: 'grpcStreams' }), 1)
    permit.release()
    assert.equal(running.registry.value('sluice_access_grpc_streams'), 0)
  })

  test('plans can be replaced while running, and a missing plan is reported', async () => {
    await using folder = await openAccessFolder()
    const tradingPlan = { ...BUILT_IN_PLANS.build, unitsPerSecond: 40 }
    const { secret } = await folder.subscribe('first', 'trading')
    await using running = await folder.start({ plans: { trading: tradingPlan } })
    const caller = must(running.enter(secret))
    assert.equal(caller.limits.unitsPerSecond, 40)
    assert.equal(running.health.size, 0)
    running.access.setPlans(BUILT_IN_PLANS)
    assert.equal(must(running.enter(secret)).limits, BUILT_IN_PLANS.starter)
    assert.match(running.health.get('plans') ?? '', /trading/)
    running.access.setPlans({ ...BUILT_IN_PLANS, trading: { ...tradingPlan, unitsPerSecond: 50 } })
    assert.equal(running.health.has('plans'), false)
    assert.equal(must(running.enter(secret)).limits.unitsPerSecond, 50)
  })

  test('shares its quota through Redis, and reports when Redis is unreachable', async () => {
    await using folder = await openAccessFolder()
    await using server = await startRedis()
    const { secret } = await folder.subscribe('first')
    const options = { quota: { shared: { url: server.url } } }
    await using a = await folder.start(options)
    await using b = await folder.start(options)
    const [one, other] = [must(a.enter(secret)), must(b.enter(secret))]
    for (let count = 0; count < 4; count++) assert.equal(a.access.admit(one, HEAVY).ok, count < 3)
    await until('the other process to know', () => {
      const { remaining } = b.access.quota(other)
      return remaining !== null && remaining < 100
    })
    assert.equal(a.registry.value('sluice_access_quota_shared_up'), 1)
    await until('both to be counted', () => a.registry.value('sluice_access_quota_processes') === 2)
    await server.kill()
    await until('both to report it', () => a.health.has('quota') && b.health.has('quota'))
    assert.equal(a.registry.value('sluice_access_quota_shared_up'), 0)
    assert.equal(reasonOf(a.enter(secret)), 'ok')
    await until('both to admit calls', () => a.access.admit(one, RPC).ok && b.access.admit(other, RPC).ok)
    await server.start()
    await until('both to recover', () => a.health.size === 0 && b.health.size === 0)
  })
})
