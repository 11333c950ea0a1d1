import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import type { WsConnection } from '../../platform/ws/connection.ts'
import { servePubSub } from './connection.ts'
import { Registry } from './registry.ts'

const KINDS = ['account', 'program', 'logs', 'signature', 'slot', 'slotsUpdates', 'root', 'block', 'vote']
const anyParams = fc.oneof(
  fc.json({ maxDepth: 4 }),
  fc.constant('["11111111111111111111111111111111",{"encoding":"base64","filters":[{"dataSize":1}]}]'),
  fc.constant('[{"mentions":["11111111111111111111111111111111"]}]'),
)
const anyMessage = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc
    .record({
      method: fc.oneof(
        fc.constantFrom(...KINDS.flatMap((kind) => [`${kind}Subscribe`, `${kind}Unsubscribe`])),
        fc.string(),
      ),
      params: anyParams,
      id: fc.oneof(
        fc.nat().map(String),
        fc.string().map((text) => JSON.stringify(text)),
        fc.constant('null'),
      ),
    })
    .map(
      ({ method, params, id }) => `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${params}}`,
    ),
)

test('any message gets a JSON-RPC response or none, and closing the connection ends its subscriptions', (t) => {
  checkProperty(
    t,
    fc.property(fc.array(anyMessage, { maxLength: 20 }), (messages) => {
      const registry = new Registry()
      const faults: unknown[] = []
      const sent: string[] = []
      let receive: (text: string) => void = () => {}
      let close = () => {}
      const connection = {
        send: (text: string) => sent.push(text),
        sendFrame: () => {},
        close: () => {},
        onMessage(listener: (text: string) => void) {
          receive = listener
        },
        onClose(listener: () => void) {
          close = listener
        },
      } as unknown as WsConnection
      servePubSub(connection, {
        registry,
        isEnabled: () => true,
        announcePast: () => {},
        getVersion: () => null,
        log: { ...silentLogger, error: (fault) => void faults.push(fault) },
      })
      for (const message of messages) receive(Buffer.from(message).toString())
      for (const text of sent) {
        const responses = [JSON.parse(text)].flat() as { jsonrpc: string; id: unknown; error?: { code: number } }[]
        for (const response of responses) {
          assert.equal(response.jsonrpc, '2.0')
          assert.ok('id' in response)
          assert.notEqual(response.error?.code, -32603)
        }
      }
      assert.deepEqual(faults, [])
      close()
      assert.equal(registry.size, 0)
    }),
    300,
    20_000,
  )
})
