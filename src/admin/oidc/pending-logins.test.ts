import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { createPendingLogins, PENDING_MS } from './pending-logins.ts'

const REDIRECT = 'https://ops.example.net/v1/oidc/callback'

test('logins that nobody finishes are bounded in number and in time', () => {
  const clock = createManualClock()
  const pending = createPendingLogins({ clock, random: createSeededRandom(1) })
  const begun = Array.from({ length: 1001 }, () => pending.begin(REDIRECT))
  assert.equal(pending.size, 1000)
  const [oldest, next] = begun as [(typeof begun)[0], (typeof begun)[0]]
  assert.equal(pending.take(oldest.state, oldest.browser), undefined, 'the oldest ended for the newest')
  const { nonce, codeVerifier } = next
  assert.deepEqual(pending.take(next.state, next.browser), { nonce, codeVerifier, redirectUri: REDIRECT })
  clock.advance(PENDING_MS - 1)
  assert.equal(pending.size, 999)
  clock.advance(1)
  assert.equal(pending.size, 0)
})

test('every login has secrets of its own, with 256 bits each', () => {
  const pending = createPendingLogins({ clock: createManualClock(), random: createSeededRandom(1) })
  const secrets = Array.from({ length: 10 }, () => pending.begin(REDIRECT)).flatMap(
    ({ state, nonce, codeVerifier, browser }) => [state, nonce, codeVerifier, browser],
  )
  for (const secret of secrets) assert.match(secret, /^[\w-]{43}$/)
  assert.equal(new Set(secrets).size, 40)
})
