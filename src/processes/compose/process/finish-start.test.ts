import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../../core/clock.ts'
import { createLifecycle } from '../../../platform/process/lifecycle.ts'
import { silentLogger } from '../../../platform/telemetry/logger.ts'
import { finishStart } from './finish-start.ts'

test('a service whose client is slow takes no time of the other services, and everything is closed by the deadline', async () => {
  const clock = createManualClock()
  const lifecycle = createLifecycle({ lameDuckMs: 5000, deadlineMs: 25_000 }, { clock, log: silentLogger })
  const events: string[] = []
  const service = (name: string, isSlow: boolean) => ({
    beginLameDuck: () => void events.push(`${name} lame duck`),
    async drain(leftMs: number) {
      events.push(`${name} drains at ${clock.monotonicMs()}`)
      if (isSlow) await new Promise<void>((resolve) => void clock.setTimer(leftMs, resolve))
    },
  })
  const opened = new AsyncDisposableStack()
  opened.defer(() => void events.push('closed'))
  const operator = { services: [], beginLameDuck() {} }
  finishStart({ lifecycle, log: silentLogger, state: { path: '' } } as unknown as Parameters<typeof finishStart>[0], {
    operator: operator as unknown as Parameters<typeof finishStart>[1]['operator'],
    drains: { bundle: service('bundle', false), sender: undefined, indexer: service('indexer', true) },
    opened,
  })
  assert(lifecycle.isReady())
  lifecycle.stop('SIGTERM')
  assert.deepEqual(events.splice(0), ['bundle lame duck', 'indexer lame duck'])
  await clock.advanceAsync(5000)
  assert.deepEqual(events.splice(0), ['bundle drains at 5000', 'indexer drains at 5000'])
  await clock.advanceAsync(20_000)
  assert.deepEqual(events, ['closed'])
  assert.deepEqual(await lifecycle.stopped, { clean: true, reason: 'SIGTERM' })
})
