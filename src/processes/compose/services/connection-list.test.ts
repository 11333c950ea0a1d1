import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openHandlers } from '../../../../test/support/admin/handlers.ts'
import { createManualClock } from '../../../core/clock.ts'
import { createConnections } from '../../../gateway/account/connections.ts'
import type { Gateway } from '../../../gateway/service.ts'
import { makeTestFolder } from '../../../platform/files/test-folder.ts'
import type { ControlMethods } from '../../../platform/process/control-socket.ts'
import { secureRandom } from '../../../platform/process/random.ts'
import type { SupervisedThread } from '../threads/supervised-thread.ts'
import { connectionMethods } from './gateway-threads.ts'
import { gatewayMethods } from './service-methods.ts'

type List = { readonly total: number; readonly items: readonly { readonly subscription: string }[] }

test('the list of a subscription has its newest connections too, of every thread, whatever others have', async () => {
  using folder = makeTestFolder()
  const clock = createManualClock(Date.UTC(2027, 0, 1))
  const registries = [1, 2].map(() => createConnections({ clock, random: secureRandom }))
  const threads = registries.map((connections) => {
    const methods: ControlMethods = gatewayMethods({ connections } as Gateway)
    return {
      isRunning: true,
      call: async (_name: string, request: unknown) => {
        const { method, params } = request as { method: string; params: unknown }
        return methods[method]?.(params as never, { signal: new AbortController().signal })
      },
    }
  })
  const control: ControlMethods = connectionMethods(threads as unknown as readonly SupervisedThread[])
  const call = async (method: string, params?: unknown) =>
    control[method]?.(params as never, { signal: new AbortController().signal }) as never
  await using api = await openHandlers(folder.path, { call })
  await api.call('customerAdd', { body: { name: 'acme', contact: '' } })
  const open = async (name: string, counts: readonly number[]) => {
    const { body } = await api.call('subCreate', { body: { name, customer: 'acme' } })
    const { id: subscriptionId } = body as { id: string }
    for (const [at, connections] of registries.entries())
      for (let n = 0; n < (counts[at] ?? 0); n++)
        connections.enter({
          ...{ subscriptionId, interface: 'ws', remoteAddress: '192.0.2.1' },
          ...{ subscriptions: () => 0, bytesOut: () => 0, close() {} },
        })
    clock.advance(1000)
  }
  const list = async (query: Record<string, string>) => (await api.call('connectionList', { query })).body as List
  await open('large', [1100, 800])
  await open('small', [2, 1])
  await open('none', [])
  const all = await list({})
  assert.deepEqual([all.total, all.items.length], [1903, 1000])
  const small = await list({ subscription: 'small' })
  assert.equal(small.total, 3)
  assert.equal(small.items.length, 3)
  const large = await list({ subscription: 'large' })
  assert.deepEqual([large.total, large.items.length], [1900, 1000])
  assert.deepEqual(await list({ subscription: 'none' }), { items: [], next_cursor: null, total: 0 })
})
