import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { createHeldBytes } from '../../platform/http/held-bytes.ts'
import type { HttpResponse } from '../../platform/http/server/post.ts'
import { TRANSACTION_LIMITS } from '../../solana/transaction/types.ts'
import { refuseLimit } from './refusal.ts'
import { createRpcPosts } from './rpc-post.ts'

/** Posts of addresses with two reads each. */
function openTest(heldBytesMax = 1e6) {
  const reads = new Map<string, number>()
  const reported: string[] = []
  const posts = createRpcPosts(
    {},
    {
      accept: () => assert.fail('nothing is read'),
      terms: { minTipLamports: 1_000_000, tipAccounts: [] },
      transactionLimits: TRANSACTION_LIMITS,
      version: 'test',
      isHealthy: () => true,
      takeRead(address) {
        const left = reads.get(address) ?? 2
        reads.set(address, left - 1)
        return left > 0 ? undefined : refuseLimit('readsPerAddressPerSecond', 2, 1500)
      },
      refusals: {
        report: (_, requestId) => reported.push(requestId),
        record: () => assert.fail('a reached limit counts'),
      },
      onDuplicate() {},
      heldBytes: createHeldBytes(
        { bytesMax: heldBytesMax, ownerBytesMax: heldBytesMax, waitMs: 0 },
        createManualClock(),
      ),
      addressOf: ({ connection }) => connection.remoteAddress ?? '',
      clock: createManualClock(),
      random: createSeededRandom(1),
    },
  )
  return { posts, reported }
}

const JSON_HEAD = ['content-type', 'application/json', 'x-request-id', 'mine']

for (const [what, headers, bodyBytes, status] of [
  ['of another type', ['content-type', 'image/png', 'x-request-id', 'mine'], 10, 415],
  ['that is too large', JSON_HEAD, 100_000, 413],
  ['that turns out to be too large', JSON_HEAD, undefined, 413],
] as const) {
  test(`a body ${what} is taken from the reads of its address`, async () => {
    const { posts, reported } = openTest()
    const respond = async (remoteAddress: string): Promise<HttpResponse> => {
      const decision = posts.validate({ target: '/', headers, bodyBytes, connection: { remoteAddress } })
      return 'response' in decision ? decision.response : decision.tooLarge()
    }
    for (let n = 0; n < 2; n++) assert.equal((await respond('a')).status, status)
    const refused = await respond('a')
    assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '2'])
    const { error } = JSON.parse(String(refused.body)) as { error: { code: number; data: Record<string, unknown> } }
    assert.deepEqual(
      [error.code, error.data['limit'], error.data['size'], error.data['request_id']],
      [-32429, 'readsPerAddressPerSecond', 2, 'mine'],
    )
    assert.deepEqual(reported, ['mine'])
    assert.equal((await respond('b')).status, status, 'others have reads of their own')
  })
}

test('a compressed body is refused with the encodings that are accepted; identity is none', async () => {
  const { posts } = openTest()
  const validate = (encoding: string) => {
    const headers = [...JSON_HEAD, 'content-encoding', encoding]
    return posts.validate({ target: '/', headers, bodyBytes: 10, connection: { remoteAddress: 'a' } })
  }
  for (const encoding of ['gzip', 'identity, gzip']) {
    const decision = validate(encoding)
    assert('response' in decision, encoding)
    const { status, headers, body } = await decision.response
    assert.deepEqual([status, headers['accept-encoding']], [415, 'identity'], encoding)
    assert.match(String(body), /uncompressed/)
  }
  for (const encoding of ['identity', ' Identity', '']) assert(!('response' in validate(encoding)), encoding)
})

test('bodies that are not complete are held up to a limit, and those beyond it are refused until one is released', () => {
  const { posts } = openTest(10_000)
  const validate = (remoteAddress: string) => {
    const decision = posts.validate({ target: '/', headers: JSON_HEAD, bodyBytes: 5000, connection: { remoteAddress } })
    assert(!('response' in decision))
    return decision
  }
  for (const address of ['a', 'b']) assert.equal(validate(address).holdBody?.(5000), undefined)
  const refused = validate('c').holdBody?.(5000)
  assert.deepEqual([refused?.status, refused?.headers['retry-after']], [429, '2'])
  const { error } = JSON.parse(String(refused?.body)) as { error: { code: number; data: Record<string, unknown> } }
  assert.deepEqual([error.code, error.data['limit'], error.data['size']], [-32429, 'heldBytes', 10_000])
  validate('a').releaseBody?.(5000)
  assert.equal(validate('c').holdBody?.(5000), undefined)
})
