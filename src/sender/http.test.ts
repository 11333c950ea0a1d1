import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHeldBytes } from '../platform/http/held-bytes.ts'
import { systemClock } from '../platform/process/clock.ts'
import { secureRandom } from '../platform/process/random.ts'
import { silentLogger } from '../platform/telemetry/logger.ts'
import { TRANSACTION_LIMITS } from '../solana/transaction/types.ts'
import { refusePlain } from './accept/refusal.ts'
import { startSenderServer } from './http.ts'

test('raw transactions are held up to a limit, and released after their response', async () => {
  const heldBytes = createHeldBytes({ bytesMax: 8, ownerBytesMax: 8, waitMs: 0 }, systemClock)
  await using sender = await startSenderServer(
    {
      ...TRANSACTION_LIMITS,
      listen: { host: '127.0.0.1', port: 0 },
      trustedProxies: [],
      readsPerAddressPerSecond: 100,
      waitersMax: 1,
      waitersPerAddressMax: 1,
      receiptsMax: 1,
    },
    {
      log: silentLogger,
      clock: systemClock,
      random: secureRandom,
      accept: async () => ({ ok: false, refusal: refusePlain('no-path') }),
      refusals: { report() {}, record() {} },
      heldBytes,
      onRefused() {},
      onNotAfter() {},
    } as unknown as Parameters<typeof startSenderServer>[1],
  )
  const send = (body: string) =>
    fetch(`http://127.0.0.1:${sender.address.port}/api/v1/transactions`, {
      method: 'POST',
      headers: { 'content-type': 'text/plain' },
      body,
    })
  for (let at = 0; at < 3; at++) assert.equal((await send('A'.repeat(8))).status, 503)
  const refused = await send('A'.repeat(12))
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '2'])
  const { error } = (await refused.json()) as { error: { data: Record<string, unknown> } }
  assert.deepEqual([error.data['limit'], error.data['size']], ['heldBytes', 8])
})
