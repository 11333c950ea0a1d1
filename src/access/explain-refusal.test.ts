import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TOKEN_REFUSALS } from '../contract/errors.ts'
import { CREDENTIAL_SOURCES, type TokenInterface } from './credentials.ts'
import { explainRefusal } from './explain-refusal.ts'
import { REFUSAL_FIXES } from './refusal-fixes.ts'

const INTERFACES = Object.keys(CREDENTIAL_SOURCES) as TokenInterface[]
/** A test vector of the token format, never issued. */
const SECRET = 'slc_0123456789ABCDEFGHIJKLMNOPQRSTUV4LgkA2'
const TICKET = 'wst_secret'

test('every reason has a way out on every interface, with and without a head, and no value of the request is shown', () => {
  const names = ['x-token', 'X-Token', 'authorization', 'x-api-key', 'cookie', SECRET]
  const values = [SECRET, `Bearer ${SECRET}`, `Basic ${SECRET}`, `bearer`, '']
  const queries = [
    '',
    `api-key=${SECRET}`,
    `api_key=${SECRET}&api_key=`,
    `ticket=${TICKET}`,
    `ticket=${TICKET}&ticket=%zz`,
    SECRET,
  ]
  for (const at of INTERFACES) {
    for (const reason of TOKEN_REFUSALS) {
      for (const query of queries) {
        for (const name of names) {
          for (const value of values) {
            const headers = [name, value, 'x-token', SECRET]
            const explained = explainRefusal(at, { ok: false, reason }, { headers, query })
            const text = JSON.stringify(explained)
            assert.ok(!text.includes(SECRET) && !text.includes(TICKET), text)
            assert.ok(explained.fix.length > 20 && !explained.fix.includes('{'), `${at} ${reason}: ${text}`)
          }
        }
      }
      const { fix, found } = explainRefusal(at, { ok: false, reason })
      assert.ok(fix.length > 20 && found === undefined, `${at} ${reason}`)
    }
  }
})

test('the ways out are ASCII, because gRPC messages and terminals show them', () => {
  for (const [cause, fixes] of Object.entries(REFUSAL_FIXES)) {
    for (const fix of Object.values(fixes)) assert.match(fix ?? '', /^[\x20-\x7e]*$/, cause)
  }
})

test('found lists names only, and not without end', () => {
  const headers = Array.from({ length: 40 }, () => ['x-token', SECRET]).flat()
  assert.deepEqual(
    explainRefusal('rpc', { ok: false, reason: 'conflicting' }, { headers }).found,
    Array.from({ length: 8 }, () => 'x-token'),
  )
})
