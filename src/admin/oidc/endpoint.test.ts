import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { type Logger, silentLogger } from '../../platform/telemetry/logger.ts'
import { AdminError, type AdminRefusal } from '../api/errors.ts'
import { createSessions } from '../auth/sessions.ts'
import { createOidcEndpoint, type OidcEndpointDeps } from './endpoint.ts'
import { oidcOptions } from './options.ts'
import type { Callback, SignIn } from './sign-in.ts'

const LOGIN = '/v1/oidc/login'
const CALLBACK = '/v1/oidc/callback'
const OPTIONS = oidcOptions.parse({ issuer: 'https://i.example', clientId: 'sluice', roles: { ops: 'support' } })
const PERSON = { ...{ id: 'oidc:i.example#u-1', name: 'Ann', role: 'support' as const, groups: ['ops'] }, ...OPTIONS }

/** The paths of sign-in over a flow that accepts everything. */
function setUp(given: Partial<OidcEndpointDeps> = {}, finish: () => void = () => {}) {
  const [clock, random] = [createManualClock(), createSeededRandom(1)]
  const redirects: string[] = []
  const callbacks: Callback[] = []
  const signIn: SignIn = {
    options: OPTIONS,
    async begin(redirectUri) {
      redirects.push(redirectUri)
      return { url: 'https://i.example/authorize', browser: 'secret-of-the-browser' }
    },
    async finish(callback) {
      callbacks.push(callback)
      finish()
      return PERSON
    },
  }
  const endpoint = createOidcEndpoint({
    ...{ clock, random, log: silentLogger, isSecure: false, sessions: createSessions({ clock, random }) },
    oidc: { current: () => signIn, apply() {}, roleOf: () => 'support' },
    ...given,
  })
  const call = (path: string, { query = '', address = '127.0.0.1', cookie = '' } = {}) => {
    const request = { method: 'GET', headers: { host: 'ops.example.net:9470', cookie } } as IncomingMessage
    return endpoint.respond(request, { path, query, address })
  }
  return { call, redirects, callbacks }
}

test('the cookie of a login is for its callback alone, out of reach of scripts, and ends with the login', async () => {
  const attributes = `Path=${CALLBACK}; HttpOnly; SameSite=Lax`
  for (const [isSecure, more] of [
    [false, ''],
    [true, '; Secure'],
  ] as const) {
    const { call } = setUp({ isSecure })
    const { cookies } = await call(LOGIN)
    assert.deepEqual(cookies, [`sluice_oidc=secret-of-the-browser; ${attributes}; Max-Age=600${more}`])
    const { location, cookies: after } = await call(CALLBACK, { query: 'state=s&code=c' })
    assert.equal(location, '/')
    assert.match(after[0] ?? '', isSecure ? /^sluice_admin=.*; Secure$/ : /^sluice_admin=.*; SameSite=Strict$/)
    assert.deepEqual(after.slice(1), [`sluice_oidc=; ${attributes}; Max-Age=0${more}`])
  }
})

test('the issuer sends the browser back to the public address; without one to the host of the request', async () => {
  for (const [given, expected] of [
    [{}, 'http://ops.example.net:9470'],
    [{ isSecure: true }, 'https://ops.example.net:9470'],
    [{ isSecure: true, publicUrl: 'https://console.example.net' }, 'https://console.example.net'],
    [{ publicUrl: 'https://console.example.net/' }, 'https://console.example.net'],
  ] as const) {
    const { call, redirects } = setUp(given)
    await call(LOGIN)
    assert.deepEqual(redirects, [`${expected}${CALLBACK}`])
  }
})

test('a parameter that is given twice counts as missing, and an issuer that is given twice as a wrong one', async () => {
  const { call, callbacks } = setUp()
  const cookie = 'a=b; sluice_oidc=secret-of-the-browser'
  await call(CALLBACK, { query: 'state=s&code=c&iss=i', cookie })
  await call(CALLBACK, { query: 'state=s&state=s&code=c&code=d&error=e&error=e&iss=i&iss=i' })
  await call(CALLBACK, { query: 'error=access_denied' })
  const none = { state: undefined, code: undefined, iss: undefined, error: undefined, browser: undefined }
  assert.deepEqual(callbacks, [
    { ...none, state: 's', code: 'c', iss: 'i', browser: 'secret-of-the-browser' },
    { ...none, iss: '' },
    { ...none, error: 'access_denied' },
  ])
})

test('the budget of logins is that of an IPv6 /64, not of each of its addresses', async () => {
  const { call } = setUp()
  for (let n = 0; n < 20; n++) await call(LOGIN, { address: `2001:db8::${n.toString(16)}` })
  await assert.rejects(call(LOGIN, { address: '2001:db8::ffff' }), { code: 'too-many-requests' })
  await call(LOGIN, { address: '2001:db8:0:1::1' })
})

test('the log has the failures that need the issuer, not those that anybody can cause', async () => {
  const warned: unknown[] = []
  const log: Logger = { ...silentLogger, warn: (fields: unknown) => void warned.push(fields) }
  let code: AdminRefusal = 'sign-in-expired'
  const { call } = setUp({ log }, () => {
    throw new AdminError(code, 'the reason', 'The fix.')
  })
  for (code of ['sign-in-expired', 'sign-in-refused', 'no-role', 'issuer-unavailable'] as const)
    await assert.rejects(call(CALLBACK, { query: 'state=s&code=c', address: '192.0.2.7' }), { code })
  assert.deepEqual(
    warned,
    ['sign-in-refused', 'no-role', 'issuer-unavailable'].map((expected) => {
      return { code: expected, reason: 'the reason', address: '192.0.2.7' }
    }),
  )
})
