import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { authenticate, type Policy } from './authorize.ts'

const TOKENS: Readonly<Record<string, string>> = { one: 'slc_one', other: 'slc_other' }

/** Accepts each token of the table, and as a ticket the name of one. */
const access = {
  authenticate(presented: { token?: string; refused?: string }) {
    const owner = Object.keys(TOKENS).find((name) => TOKENS[name] === presented.token)
    if (owner === undefined) return { ok: false, reason: presented.refused ?? 'unknown' }
    return { ok: true, tokenSha256: owner }
  },
  authenticateTicket: (ticket: string) =>
    ticket in TOKENS ? { ok: true, tokenSha256: ticket } : { ok: false, reason: 'malformed' },
} as unknown as Policy['access']

function outcomeOf(token: string | undefined, tickets: string[]): string | undefined {
  const rawHeaders = token === undefined ? [] : ['x-token', token]
  const caller = authenticate({ access, clock: createManualClock() }, { rawHeaders } as IncomingMessage, tickets)
  return caller?.ok === true ? caller.tokenSha256 : caller?.reason
}

test('a ticket is accepted alone and beside its own token, and refused beside another one', () => {
  assert.equal(outcomeOf(undefined, ['one']), 'one')
  assert.equal(outcomeOf(TOKENS['one'], ['one']), 'one')
  assert.equal(outcomeOf(TOKENS['other'], ['one']), 'conflicting')
  assert.equal(outcomeOf('slc_nobody', ['one']), 'conflicting')
  assert.equal(outcomeOf(TOKENS['one'], ['one', 'one']), 'conflicting')
  assert.equal(outcomeOf(TOKENS['one'], []), 'one')
  assert.equal(outcomeOf(undefined, []), 'missing')
})
