import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { sluice, temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'
import { blockPackets, sendAll } from '../support/shreds/rig.ts'
import { makeStore } from '../support/store/make-store.ts'

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

test('sluice shreds without nodes learns the length of a slot from the shreds', async () => {
  await using home = await temporaryFolder()
  await makeStore(home.file('.sluice'))
  await using process = serve({ cwd: home.path, command: 'shreds' })
  await process.line(/"msg":"started"/)
  const port = Number((await process.address('shreds')).split(':').at(-1))
  const sender = createSocket('udp4')
  using _closing = { [Symbol.dispose]: () => void sender.close() }
  sender.bind(0, '127.0.0.1')
  await once(sender, 'listening')
  // By the clock, so that a busy machine skips slots instead of stretching them.
  const fromMs = performance.now()
  const slotNow = () => 1000 + Math.floor((performance.now() - fromMs) / 250)
  await until(
    'it is learned',
    async () => {
      await sendAll(sender, blockPackets(slotNow()).slice(0, 1), port)
      if (slotNow() < 1034) return false
      const { stdout } = await sluice(['status', '--json'], { cwd: home.path })
      const { slot_length: shown } = JSON.parse(stdout) as { slot_length: { ms: number; is_learned: boolean } }
      return shown.is_learned && Math.abs(shown.ms - 250) < 50
    },
    60_000,
  )
  assert.equal(await process.stop(), 0)
})
