import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { sluice, temporaryFolder } from '../support/cli.ts'
import { serve } from '../support/serve.ts'

test('sluice serve learns the length of a slot from its nodes, and shows it in status and metrics', async () => {
  await using home = await temporaryFolder()
  await using process = serve({
    cwd: home.path,
    env: { SLUICE_LOCALNET__ENABLED: 'true', SLUICE_LOCALNET__SLOT_MS: '200' },
  })
  await process.line(/"msg":"started"/)
  const shown = async () =>
    (
      JSON.parse((await sluice(['status', '--json'], { cwd: home.path })).stdout) as {
        slot_length: { ms: number; is_learned: boolean }
      }
    ).slot_length
  // The machine may be busy: 60 ms more or less is no other length.
  const isNear = (ms: number) => Math.abs(ms - 200) < 60
  await until(
    'it is learned',
    async () => {
      const { ms, is_learned: isLearned } = await shown()
      return isLearned && isNear(ms)
    },
    60_000,
  )
  assert.match((await sluice(['status'], { cwd: home.path })).stdout, /^slot length +\d+ ms$/m)
  const metrics = `http://${await process.address('metrics')}/metrics`
  await until(
    'every thread has learned it',
    async () => {
      const text = await (await fetch(metrics)).text()
      return isNear(Number(/^sluice_slot_length_seconds ([\d.]+)$/m.exec(text)?.[1]) * 1000)
    },
    60_000,
  )
  assert.equal(await process.stop(), 0)
})
