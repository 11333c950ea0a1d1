import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { temporaryFolder } from '../support/cli/run.ts'
import { freePort } from '../support/machine/free-ports.ts'
import { serve } from '../support/process/serve.ts'

test('promtool accepts /metrics in both formats', async () => {
  await using home = await temporaryFolder()
  await using running = serve({ cwd: home.path })
  const address = await running.address('metrics')
  const text = await (await fetch(`http://${address}/metrics`)).text()
  assert.match(text, /^sluice_build_info\{.*version=/m)
  assert.match(text, /^sluice_access_subscriptions \d+$/m)
  execFileSync('promtool', ['check', 'metrics'], { input: text })
  const open = await fetch(`http://${address}/metrics`, {
    headers: { accept: 'application/openmetrics-text; version=1.0.0' },
  })
  assert.match(open.headers.get('content-type') ?? '', /openmetrics/)
  assert.match(await open.text(), /# EOF\n$/)
})

test('a real Prometheus scrapes the operator listener without an error', async () => {
  await using home = await temporaryFolder()
  await using running = serve({ cwd: home.path })
  const target = await running.address('metrics')
  // During the start a response may take longer than the scrape timeout.
  await running.line(/"msg":"started"/)
  const port = await freePort()
  writeFileSync(
    home.file('prometheus.yml'),
    `global: { scrape_interval: 2s, scrape_timeout: 2s }\nscrape_configs:\n  - job_name: sluice\n    static_configs: [{ targets: ['${target}'] }]\n`,
  )
  const args = [
    `--config.file=${home.file('prometheus.yml')}`,
    `--storage.tsdb.path=${home.file('tsdb')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ]
  const prometheus = spawn('prometheus', args, { stdio: 'ignore' })
  const ended = once(prometheus, 'close')
  try {
    const signal = AbortSignal.timeout(60_000)
    const query = async (expression: string): Promise<{ value: [number, string] }[]> => {
      const response = await fetch(`http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(expression)}`, {
        signal,
      }).catch(() => undefined)
      if (response?.status !== 200) return []
      return ((await response.json()) as { data: { result: { value: [number, string] }[] } }).data.result
    }
    // Three consecutive successful scrapes, as counted by Prometheus.
    while (Number((await query('sum_over_time(up{job="sluice"}[1m])'))[0]?.value[1] ?? 0) < 3) {
      assert.ok(!signal.aborted, 'no three scrapes in time')
    }
    assert.equal((await query('min_over_time(up{job="sluice"}[1m])'))[0]?.value[1], '1')
    assert.equal((await query('sluice_access_subscriptions'))[0]?.value[1], '1')
  } finally {
    prometheus.kill('SIGTERM')
    await ended
  }
})
