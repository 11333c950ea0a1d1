import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { compileTerms } from '../../src/access/terms.ts'
import { createSeededRandom } from '../../src/core/random.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { type ServedGateway, startServedGateway } from '../support/gateway/served.ts'
import { startPostgres } from '../support/machine/postgres.ts'
import { startRedis } from '../support/machine/redis.ts'
import { isFull, seedOf } from '../support/process/property.ts'
import { startCountingNode } from './counting-node.ts'
import { runCaller } from './storm.ts'
import { STORM_CONFIG, STORM_PLANS } from './storm-plan.ts'

const STORM_MS = isFull ? 30_000 : 4000
/** A busy machine needs longer for the same work. */
const STORM_MS_MAX = 60_000
const CALLERS = isFull ? 12 : 6
const THREADS = 2
const MACHINES = 2

/** No other service calls the nodes. */
const ALONE = { SLUICE_SENDER__ENABLED: 'false', SLUICE_SHREDS__ENABLED: 'false' }

const { buckets, unitsBucket } = compileTerms(STORM_PLANS['storm'] as never)
const units = buckets[unitsBucket] ?? assert.fail('the plan has a limit of units')

const isBefore = (ms: number) => performance.now() < ms

type Storm = { readonly forwarded: number; readonly charged: number; readonly seconds: number }

/** Callers on all interfaces of all gateways, and rotations of their token, until the limit is met; then a clean end of the gateways. */
async function storm(
  t: TestContext,
  gateways: readonly ServedGateway[],
  { units: forwardedSoFar }: Awaited<ReturnType<typeof startCountingNode>>,
): Promise<Storm> {
  const seed = seedOf(t)
  const [first] = gateways
  assert.ok(first !== undefined)
  const secretOf = async (...words: string[]) => {
    const { code, stdout, stderr } = await first.sluice(...words, '--print-token')
    assert.equal(code, 0, stderr)
    return /slc_[0-9A-Za-z]{38}/.exec(stdout)?.[0] ?? ''
  }
  let token = await secretOf('sub', 'create', 'storm', '--customer', 'acme', '--plan', 'storm')
  await until('the subscription is known', async () => {
    const asked = gateways.map(({ url }) => fetch(`${url}/v1/whoami`, { headers: { 'x-token': token } }))
    return (await Promise.all(asked)).every(({ ok }) => ok)
  })
  let isOver = false
  const outcomes = new Map<string, number>()
  const fromMs = performance.now()
  const callers = Array.from({ length: CALLERS * gateways.length }, (_, caller) =>
    runCaller(gateways[caller % gateways.length] as ServedGateway, {
      random: createSeededRandom(seed + caller),
      token: () => token,
      isOver: () => isOver,
      outcomes,
    }),
  )
  const isEnough = () => forwardedSoFar() > units.capacity + units.perSecond
  try {
    while (isBefore(fromMs + STORM_MS) || (!isEnough() && isBefore(fromMs + STORM_MS_MAX))) {
      await pause(700)
      // The token before the present one may still have its grace.
      token = await secretOf('token', 'rotate', 'storm', '--grace', '1h', '--yes')
    }
  } finally {
    isOver = true
  }
  await Promise.all(callers)
  const seconds = (performance.now() - fromMs) / 1000
  for (const { running } of gateways) assert.equal(await running.stop(), 0)
  for (const { running } of gateways) {
    for (const name of ['gateway-1', 'gateway-2'])
      assert.match(running.stdout(), new RegExp(`"thread":"${name}".*"msg":"connected"`), `${name} took part`)
  }
  const rows = JSON.parse((await first.sluice('usage', '--sub', 'storm', '--json')).stdout) as { units: number }[]
  const charged = rows.reduce((sum, row) => sum + row.units, 0)
  const forwarded = forwardedSoFar()
  t.diagnostic(`${forwarded} units forwarded, ${charged} charged in ${seconds.toFixed(1)} s`)
  t.diagnostic([...outcomes].map(([name, count]) => `${name}: ${count}`).join(', '))
  assert.ok(forwarded > units.capacity, 'the storm met the limit')
  return { forwarded, charged, seconds }
}

describe('T13: the quota cannot be bypassed by threads', () => {
  test('T13: one budget over two threads of a process, exactly', async (t) => {
    const counting = await startCountingNode()
    await using node = counting.node
    const { rpc, ws, grpc } = node
    await using gateway = await startServedGateway([{ name: 'n', rpc, ws, grpc }], {
      workers: THREADS,
      config: STORM_CONFIG,
      env: ALONE,
    })
    const { forwarded, charged, seconds } = await storm(t, [gateway], counting)
    assert.equal(charged, forwarded)
    // Without a slack: the threads charge one account.
    assert.ok(forwarded <= units.capacity + units.perSecond * seconds, `${forwarded} units in ${seconds} s`)
  })

  test('T13: one budget over two machines with two threads each, on PostgreSQL and Redis', async (t) => {
    const counting = await startCountingNode()
    await using node = counting.node
    await using postgres = await startPostgres()
    await using redis = await startRedis()
    const store = `[access]
store = { engine = "postgres", url = "${await postgres.createDatabase('storm')}?sslmode=disable" }
[access.quota.shared]
url = "${redis.url}"
processesAssumed = ${MACHINES}
`
    const { rpc, ws, grpc } = node
    const machine = (customer: string) =>
      startServedGateway([{ name: 'n', rpc, ws, grpc }], {
        workers: THREADS,
        config: `${store}${STORM_CONFIG}`,
        env: ALONE,
        customer,
      })
    await using one = await machine('acme')
    await using other = await machine('other')
    const { forwarded, charged, seconds } = await storm(t, [one, other], counting)
    assert.equal(charged, forwarded)
    // Each process holds at most a chunk that it has not spent, whatever the number of its threads (decision 4).
    const budget = units.capacity + units.perSecond * seconds + MACHINES * units.chunk
    assert.ok(forwarded <= budget, `${forwarded} units of a budget of ${budget}`)
  })
})
