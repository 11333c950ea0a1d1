import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createSeededRandom } from '../core/random.ts'
import { hashToken } from './token.ts'
import { createWsTickets, TICKET_MS } from './ws-ticket.ts'

const NOW = Date.UTC(2027, 0, 1)
const digest = hashToken('slc_000000000000000000000000000000000JcP3N')
const key = createSeededRandom(1).bytes(32)

describe('ws tickets', () => {
  test('a ticket is valid for sixty seconds in every process that has the key', () => {
    const { ticket, expiresAtMs } = createWsTickets(key).issue(digest, NOW)
    const other = createWsTickets(Uint8Array.from(key))
    assert.equal(expiresAtMs, NOW + TICKET_MS)
    for (const at of [NOW, NOW + 1000, NOW + TICKET_MS]) {
      assert.deepEqual(other.check(ticket, at), { ok: true, tokenSha256: digest })
    }
    assert.deepEqual(other.check(ticket, NOW + TICKET_MS + 1), { ok: false, reason: 'expired' })
  })

  test('is refused with another key', () => {
    const { ticket } = createWsTickets(key).issue(digest, NOW)
    assert.deepEqual(createWsTickets(createSeededRandom(2).bytes(32)).check(ticket, NOW), {
      ok: false,
      reason: 'unknown',
    })
  })

  test('refuses every changed character, and its expiry cannot be extended', () => {
    const tickets = createWsTickets(key)
    const { ticket } = tickets.issue(digest, NOW)
    for (let at = 0; at < ticket.length; at++) {
      for (const character of 'Aa0_') {
        const changed = ticket.slice(0, at) + character + ticket.slice(at + 1)
        const result = tickets.check(changed, NOW)
        // The last character carries two unused bits; a change of those alone is the same ticket.
        if (result.ok)
          assert.deepEqual(Buffer.from(changed.slice(4), 'base64url'), Buffer.from(ticket.slice(4), 'base64url'))
      }
    }
    const bytes = Buffer.from(ticket.slice(4), 'base64url')
    bytes.writeUIntBE(NOW + 3_600_000, 0, 6)
    assert.deepEqual(tickets.check(`wst_${bytes.toString('base64url')}`, NOW), { ok: false, reason: 'unknown' })
  })

  test('other texts are malformed', () => {
    const tickets = createWsTickets(key)
    for (const text of ['', 'wst_', 'x'.repeat(98), `wst_${'é'.repeat(94)}`, 'wst_'.repeat(5000)]) {
      assert.deepEqual(tickets.check(text, NOW), { ok: false, reason: 'malformed' }, text.slice(0, 20))
    }
  })

  test('a ticket does not contain the token, and a key of the wrong size is refused', () => {
    assert.equal(createWsTickets(key).issue(digest, NOW).ticket.includes('slc_'), false)
    assert.throws(() => createWsTickets(new Uint8Array(31)), RangeError)
  })
})
