import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../test/support/process/property.ts'
import {
  CREDENTIAL_LENGTH_MAX,
  CREDENTIAL_SOURCES,
  collectLogin,
  collectToken,
  type PresentedToken,
  splitTokenInPassword,
} from './credentials.ts'

const A = 'slc_000000000000000000000000000000000JcP3N'
const B = 'slc_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz1IfYpL'
const token = (text: string): PresentedToken => ({ token: text })
const missing: PresentedToken = { refused: 'missing' }
const conflicting: PresentedToken = { refused: 'conflicting' }

type Case = [headers: string[], query: string, rpc: PresentedToken, others: PresentedToken]

/** Forty combinations with the result for RPC, and for WebSocket, gRPC and the execution service, which read two headers only. */
const TABLE: Case[] = [
  [[], '', missing, missing],
  [['host', 'x', 'user-agent', A], '', missing, missing],
  [['x-token', A], '', token(A), token(A)],
  [['X-Token', A], '', token(A), token(A)],
  [['X-TOKEN', ''], '', token(''), token('')],
  [['x_token', A], '', missing, missing],
  [['authorization', `Bearer ${A}`], '', token(A), token(A)],
  [['Authorization', `bearer ${A}`], '', token(A), token(A)],
  [['Authorization', `BEARER   ${A} `], '', token(A), token(A)],
  [['authorization', 'Bearer'], '', token(''), token('')],
  [['authorization', `Bearer${A}`], '', missing, missing],
  [['authorization', 'Basic dTpw'], '', missing, missing],
  [['authorization', A], '', missing, missing],
  [['authorization', 'Basic dTpw', 'x-token', A], '', token(A), token(A)],
  [['x-api-key', A], '', token(A), missing],
  [['X-API-Key', A], '', token(A), missing],
  [[], `api-key=${A}`, token(A), missing],
  [[], `api_key=${A}`, token(A), missing],
  [[], `a=1&api-key=${A}&b=2`, token(A), missing],
  [[], `API-KEY=${A}`, missing, missing],
  [[], `api%2Dkey=${A}`, token(A), missing],
  [[], `api-key=${A.replace('_', '%5f')}`, token(A), missing],
  [[], 'api-key', token(''), missing],
  [[], 'api-key=', token(''), missing],
  [[], 'api-key=%zz', token('%zz'), missing],
  [[], 'apikey=x&key=y', missing, missing],
  [['x-token', A, 'authorization', `Bearer ${A}`], '', token(A), token(A)],
  [['x-token', A, 'authorization', `Bearer ${B}`], '', conflicting, conflicting],
  [['x-token', A, 'x-token', A], '', conflicting, conflicting],
  [['x-token', A, 'X-Token', B], '', conflicting, conflicting],
  [['authorization', `Bearer ${A}`, 'authorization', `Bearer ${A}`], '', conflicting, conflicting],
  [['authorization', `Bearer ${A}`, 'Authorization', 'Basic dTpw'], '', conflicting, conflicting],
  [['x-token', A, 'x-api-key', A], '', token(A), token(A)],
  [['x-token', A, 'x-api-key', B], '', conflicting, token(A)],
  [['x-api-key', A, 'x-api-key', A], '', conflicting, missing],
  [['x-token', A], `api-key=${A}`, token(A), token(A)],
  [['x-token', A], `api-key=${B}`, conflicting, token(A)],
  [['x-token', A], 'api-key=', conflicting, token(A)],
  [[], `api-key=${A}&api_key=${A}`, token(A), missing],
  [[], `api-key=${A}&api_key=${B}`, conflicting, missing],
  [[], `api-key=${A}&api-key=${A}`, conflicting, missing],
  [[], `api-key=${A}&api%2dkey=${A}`, conflicting, missing],
  [['x-token', A, 'authorization', `Bearer ${A}`, 'x-api-key', A], `api-key=${A}&api_key=${A}`, token(A), token(A)],
]

describe('credential sources', () => {
  test('every combination gives the result of the table, on each interface', () => {
    assert.ok(TABLE.length >= 40)
    for (const [headers, query, rpc, others] of TABLE) {
      const shown = JSON.stringify([headers, query])
      assert.deepEqual(collectToken(CREDENTIAL_SOURCES.rpc, headers, query), rpc, `rpc ${shown}`)
      for (const server of ['ws', 'grpc', 'execution'] as const) {
        assert.deepEqual(collectToken(CREDENTIAL_SOURCES[server], headers, query), others, `${server} ${shown}`)
      }
    }
  })

  test('a WebSocket reads its query only when that is configured, and x-api-key never', () => {
    assert.deepEqual(collectToken(CREDENTIAL_SOURCES.wsWithQuery, [], `api-key=${A}`), token(A))
    assert.deepEqual(collectToken(CREDENTIAL_SOURCES.wsWithQuery, ['x-token', A], `api_key=${B}`), conflicting)
    assert.deepEqual(collectToken(CREDENTIAL_SOURCES.wsWithQuery, ['x-api-key', A], ''), missing)
  })

  test('the indexer reads its token only from x-token', () => {
    assert.deepEqual(collectToken(CREDENTIAL_SOURCES.indexer, ['authorization', `Bearer ${A}`], ''), missing)
    assert.deepEqual(
      collectToken(CREDENTIAL_SOURCES.indexer, ['authorization', 'Basic dTpw', 'x-token', A], ''),
      token(A),
    )
  })

  test('treats an oversized value as empty', () => {
    assert.deepEqual(
      collectToken(CREDENTIAL_SOURCES.rpc, ['x-token', 'x'.repeat(CREDENTIAL_LENGTH_MAX)]),
      token('x'.repeat(8192)),
    )
    assert.deepEqual(
      collectToken(CREDENTIAL_SOURCES.rpc, ['x-token', 'x'.repeat(CREDENTIAL_LENGTH_MAX + 1)]),
      token(''),
    )
    assert.deepEqual(collectToken(CREDENTIAL_SOURCES.rpc, [], `api-key=${'x'.repeat(100_000)}`), token(''))
    assert.deepEqual(collectToken(CREDENTIAL_SOURCES.rpc, [], '&'.repeat(100_000)), missing)
  })

  test('agrees with a direct implementation of the rule on random requests', (t) => {
    const credentialSource = fc.constantFrom('x-token', 'authorization', 'x-api-key', 'api-key', 'api_key', 'other')
    const value = fc.constantFrom(A, B, '')
    const property = fc.property(fc.array(fc.tuple(credentialSource, value), { maxLength: 5 }), (carried) => {
      const headers = carried
        .filter(([name]) => name !== 'api-key' && name !== 'api_key')
        .flatMap(([name, text]) => [name, name === 'authorization' ? `Bearer ${text}` : text])
      const query = carried
        .filter(([name]) => name === 'api-key' || name === 'api_key')
        .map(([name, text]) => `${name}=${text}`)
        .join('&')
      const counted = carried.filter(([name]) => name !== 'other')
      const isTwice = new Set(counted.map(([name]) => name)).size < counted.length
      const values = new Set(counted.map(([, text]) => text))
      const expected =
        counted.length === 0 ? missing : isTwice || values.size > 1 ? conflicting : token([...values][0] ?? '')
      assert.deepEqual(collectToken(CREDENTIAL_SOURCES.rpc, headers, query), expected)
    })
    checkProperty(t, property, 1000, 50_000)
  })
})

describe('database login', () => {
  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`

  test('Basic and the ClickHouse headers are equivalent', () => {
    const login = { username: 'u_1', password: 'p:w' }
    assert.deepEqual(collectLogin(['Authorization', basic('u_1:p:w')]), login)
    assert.deepEqual(collectLogin(['X-ClickHouse-User', 'u_1', 'x-clickhouse-key', 'p:w']), login)
  })

  test('refuses missing, mixed, duplicate and malformed logins', () => {
    const cases: [string[], string][] = [
      [[], 'missing'],
      [['x-clickhouse-user', 'u'], 'missing'],
      [['x-clickhouse-key', 'p'], 'missing'],
      [['authorization', basic('u:p'), 'x-clickhouse-user', 'u'], 'conflicting'],
      [['authorization', basic('u:p'), 'Authorization', basic('u:p')], 'conflicting'],
      [['x-clickhouse-user', 'u', 'x-clickhouse-user', 'u', 'x-clickhouse-key', 'p'], 'conflicting'],
      [['authorization', `Bearer ${A}`], 'malformed'],
      [['authorization', basic('nocolon')], 'malformed'],
      [['authorization', 'Basic !!!'], 'malformed'],
      [['authorization', basic(`u:${'p'.repeat(9000)}`)], 'malformed'],
      [['x-clickhouse-user', 'u', 'x-clickhouse-key', 'p'.repeat(9000)], 'malformed'],
    ]
    for (const [headers, refused] of cases)
      assert.deepEqual(collectLogin(headers), { refused }, JSON.stringify(headers).slice(0, 80))
  })
})

describe('a token in the password', () => {
  const login = (password: string) => ({ username: 'u', password })
  test('is split off at the first colon', () => {
    const split = splitTokenInPassword({ token: missing, login: login(`${A}:p:w`) })
    assert.deepEqual(split, { token: token(A), login: login('p:w') })
    assert.deepEqual(splitTokenInPassword({ token: missing, login: login(':') }), {
      token: token(''),
      login: login(''),
    })
  })
  test('must agree with the header', () => {
    const same = splitTokenInPassword({ token: token(A), login: login(`${A}:pw`) })
    assert.deepEqual(same, { token: token(A), login: login('pw') })
    for (const given of [
      { token: token(B), login: login(`${A}:pw`) },
      { token: conflicting, login: login(`${A}:pw`) },
      { token: token(A), login: login('pw') },
      { token: missing, login: login('pw') },
      { token: missing, login: { refused: 'missing' } as const },
    ])
      assert.deepEqual(splitTokenInPassword(given), given)
  })
})
