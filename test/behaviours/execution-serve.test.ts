import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import type { HealthRecord, StatusRecord } from '../../src/contract/execution-routes.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { helloOf, openStream } from '../support/execution/stream-reader.ts'
import { serve } from '../support/process/serve.ts'

test('sluice serve without a ring runs the whole service over the simulated chain, and numbers grow across its restarts', async () => {
  await using home = await temporaryFolder()
  const env = { SLUICE_EXECUTION__ENABLED: 'true' }
  let cursor = 0
  for (const run of [1, 2]) {
    await using running = serve({ cwd: home.path, env })
    const address = await running.address('execution')
    const status = async () => (await (await fetch(`http://${address}/v1/status`)).json()) as StatusRecord
    await until('blocks come', async () => (await status()).newest_seqno > 0, 30_000)
    const { oldest_seqno, newest_seqno, status: state } = await status()
    assert.equal(state, 'healthy')
    assert(oldest_seqno > cursor + 1, `run ${run} begins above what the one before gave out`)
    await using client = await openStream(`ws://${address}/?resume_from=${cursor}`)
    await client.until(3)
    assert.equal(helloOf(client).resumed, false)
    assert.match(await (await fetch(`http://${address}/`)).text(), /<!doctype html>/i)
    // Each series is at one address only: Prometheus may scrape both without duplicates.
    const seriesAt = async (host: string) => {
      const text = await (await fetch(`http://${host}/metrics`)).text()
      return new Map([...text.matchAll(/^([a-z_]+)\S* (\S+)$/gm)].map(([, name = '', value]) => [name, Number(value)]))
    }
    const own = await seriesAt(address)
    const operator = await seriesAt(await running.address('metrics'))
    assert((own.get('sluice_execution_ring_events_total') ?? 0) > 0)
    assert(operator.has('sluice_process_resident_memory_bytes') && operator.has('sluice_build_info'))
    assert.deepEqual(
      [...own.keys()].filter((name) => operator.has(name)),
      [],
    )
    cursor = newest_seqno
    assert.equal(await running.stop(), 0)
    await until('the client was closed with a code to reconnect', () => client.closed !== undefined)
    assert.equal(client.closed?.code, 1012)
  }
})

test('the time of the last event survives a kill, and the next start counts from it', async () => {
  await using home = await temporaryFolder()
  const file = home.file('.sluice/execution/last-event')
  const health = async (address: string) => {
    const response = await fetch(`http://${address}/health`)
    const { result } = (await response.json()) as HealthRecord
    return { status: response.status, ...result }
  }
  {
    await using running = serve({ cwd: home.path, env: { SLUICE_EXECUTION__ENABLED: 'true' } })
    await running.address('execution')
    await until('the time is on disk twice', () => existsSync(file), 30_000)
    const first = readFileSync(file, 'utf8')
    await until('it is replaced', () => readFileSync(file, 'utf8') !== first, 30_000)
    await running.stop('SIGKILL')
    const lostMs = Date.now() - Number(readFileSync(file, 'utf8'))
    assert(lostMs >= 0 && lostMs < 10_000, `${lostMs} ms`)
  }
  writeFileSync(file, `${Date.now() - 3_600_000}\n`)
  const env = { SLUICE_EXECUTION__ENABLED: 'true', SLUICE_EXECUTION__RING: home.file('no-ring') }
  await using running = serve({ cwd: home.path, env })
  const address = await running.address('execution')
  const { status, healthy, last_event_age_secs } = await health(address)
  assert.deepEqual([status, healthy], [503, false])
  assert(last_event_age_secs >= 3600 && last_event_age_secs < 3700, String(last_event_age_secs))
  const readiness = (await (await fetch(`http://${await running.address('metrics')}/readyz`)).json()) as {
    state: string
    reasons: { part: string }[]
  }
  assert.equal(readiness.state, 'degraded')
  assert(readiness.reasons.some(({ part }) => part === 'execution'))
  assert.doesNotMatch(running.stdout(), /recovered/)
})
