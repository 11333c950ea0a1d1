import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { type IndexerAccount, type IndexerRig, startIndexerRig } from '../support/indexer/start.ts'

/** Headers that differ between any two responses. */
const PER_REQUEST = ['date', 'x-clickhouse-query-id', 'x-request-id']

describe('credentials of queries', () => {
  let rig: IndexerRig
  let one: IndexerAccount
  let other: IndexerAccount
  before(async () => {
    rig = await startIndexerRig({ query: { secondsMax: 1 } })
    one = await rig.subscribe('first')
    other = await rig.subscribe('second')
  })
  after(() => rig?.[Symbol.asyncDispose]())

  const ask = (headers: Record<string, string>, path = '/?query=SELECT%201') => fetch(`${rig.url}${path}`, { headers })
  const basic = (user: string, password: string) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

  test('login and token are accepted, with the login in either form', async () => {
    const { username, password, token } = one
    assert.equal((await ask(one.headers)).status, 200)
    const byKey = { 'x-clickhouse-user': username, 'x-clickhouse-key': password, 'x-token': token }
    assert.equal(await (await ask(byKey)).text(), '1\n')
  })

  test('a missing or wrong login or token gives the same response', async () => {
    const { username, password, token } = one
    const login = basic(username, password)
    const refused: Record<string, Record<string, string>> = {
      nothing: {},
      'no token': { authorization: login },
      'no login': { 'x-token': token },
      'wrong password': { authorization: basic(username, 'wrong'), 'x-token': token },
      'wrong user': { authorization: basic('u_nobody', password), 'x-token': token },
      'wrong token': { authorization: login, 'x-token': `slc_${'x'.repeat(38)}` },
      'token of another': { authorization: login, 'x-token': other.token },
      'login of another': { authorization: basic(other.username, other.password), 'x-token': token },
      'not base64': { authorization: 'Basic §§§'.replaceAll('§', '~'), 'x-token': token },
    }
    const seen = new Set<string>()
    for (const [name, headers] of Object.entries(refused)) {
      const response = await ask(headers)
      const reported = [...response.headers].filter(([header]) => !PER_REQUEST.includes(header))
      seen.add(JSON.stringify([response.status, reported, await response.text()]))
      assert.equal(response.status, 401, name)
    }
    assert.equal(seen.size, 1, [...seen].join('\n'))
    assert.match([...seen].join(''), /Code: 516\. DB::Exception: .*AUTHENTICATION_FAILED/)
    // The form of the request, which the client knows itself, is named, whatever the token is.
    const bearer = await ask({ authorization: `Bearer ${token}` })
    assert.deepEqual([bearer.status, bearer.headers.get('www-authenticate')], [401, 'Basic realm="sluice"'])
    assert.match(await bearer.text(), /Authorization: Bearer is not read here/)
    const key = { 'x-clickhouse-user': username, 'x-clickhouse-key': password }
    for (const either of [token, `slc_${'x'.repeat(38)}`]) {
      const withBearer = await ask({ authorization: `Bearer ${either}`, 'x-token': either })
      assert.match(await withBearer.text(), /Authorization: Bearer is not read here/)
      const both = await ask({ authorization: login, ...key, 'x-token': either })
      assert.equal(both.status, 401)
      assert.match(await both.text(), /The database login occurs more than once/)
    }
  })

  test('the token is not read from the password unless the operator allows it', async () => {
    const { username, password, token } = one
    assert.equal((await ask({ authorization: basic(username, `${token}:${password}`) })).status, 401)
  })

  test('with tokenInPassword a tool that sets no header logs in, and every other login gives the same 401', async () => {
    await using open = await startIndexerRig({ tokenInPassword: true })
    const { username, password, token, headers } = await open.subscribe('tool')
    const stranger = await open.subscribe('stranger')
    const get = (given: Record<string, string>) => fetch(`${open.url}/?query=SELECT%201`, { headers: given })
    const both = `${token}:${password}`
    const accepted: Record<string, Record<string, string>> = {
      basic: { authorization: basic(username, both) },
      key: { 'x-clickhouse-user': username, 'x-clickhouse-key': both },
      'the same token in the header': { authorization: basic(username, both), 'x-token': token },
      'the token in the header only': headers,
    }
    for (const [name, given] of Object.entries(accepted)) assert.equal((await get(given)).status, 200, name)
    const refused: Record<string, Record<string, string>> = {
      'password only': { authorization: basic(username, password) },
      'token only': { authorization: basic(username, token) },
      'token and no password': { authorization: basic(username, `${token}:`) },
      'other order': { authorization: basic(username, `${password}:${token}`) },
      'wrong password': { authorization: basic(username, `${token}:wrong`) },
      'wrong token': { authorization: basic(username, `slc_${'x'.repeat(38)}:${password}`) },
      'token of another': { authorization: basic(username, `${stranger.token}:${password}`) },
      'password of another': { authorization: basic(username, `${token}:${stranger.password}`) },
      'another token in the header': { authorization: basic(username, both), 'x-token': stranger.token },
      'another token in the password': {
        authorization: basic(username, `${stranger.token}:${password}`),
        'x-token': token,
      },
    }
    const seen = new Set<string>()
    for (const [name, given] of Object.entries(refused)) {
      const response = await get(given)
      const reported = [...response.headers].filter(([header]) => !PER_REQUEST.includes(header))
      seen.add(JSON.stringify([response.status, reported, await response.text()]))
      assert.equal(response.status, 401, name)
    }
    assert.equal(seen.size, 1, [...seen].join('\n'))
  })

  test('credentials in the URL are refused with the reason', async () => {
    const response = await ask(one.headers, `/?user=${one.username}&password=${one.password}&query=SELECT%201`)
    assert.equal(response.status, 400)
    assert.match(await response.text(), /not accepted in the URL/)
    assert.equal((await ask({}, `/?user=${one.username}&password=${one.password}&query=SELECT%201`)).status, 401)
  })

  test('endpoints without credentials reveal nothing', async () => {
    for (const path of ['/ping', '/', '/replicas_status']) assert.equal(await (await ask({}, path)).text(), 'Ok.\n')
    assert.equal((await ask({}, '/play')).status, 404)
  })

  test('T15: no query returns data of another customer', async () => {
    for (const query of [
      'SHOW TABLES',
      'SHOW DATABASES',
      'SELECT * FROM coverage',
      'SELECT current_user',
      'SELECT * FROM system.processes',
      'SELECT * FROM system.users',
      'SHOW PROCESSLIST',
      'SELECT * FROM duckdb_settings()',
    ]) {
      const text = await (await ask(one.headers, `/?query=${encodeURIComponent(query)}`)).text()
      for (const secret of [other.username, other.token, 'second', one.token]) assert.ok(!text.includes(secret), query)
    }
  })

  test('a query that cannot be interrupted is ended with its process; others get their results after the restart, and ingest continues', async () => {
    await until('blocks are indexed', () => (rig.indexer.status().ingest?.transactions ?? 0) > 30, 30_000)
    const { restarts } = rig.indexer.status()
    // The engine checks for an interrupt between chunks of rows; a stopped process never does.
    const pid = rig.indexer.status().storePid
    assert.ok(pid !== undefined)
    const heavy = ask(
      one.headers,
      `/?query=${encodeURIComponent('SELECT count(*) FROM transactions a, transactions b, transactions c, transactions d, transactions e, transactions f')}`,
    )
    await until('it runs', () => rig.indexer.status().runningQueries === 1)
    process.kill(pid, 'SIGSTOP')
    // The second query still has time when the first reaches its limit.
    const laterMs = performance.now() + 1500
    await until('a while has passed', () => performance.now() > laterMs)
    const waiting = ask(other.headers)
    const [stopped, repeated] = await Promise.all([heavy, waiting])
    assert.equal(stopped.status, 408)
    assert.match(await stopped.text(), /TIMEOUT_EXCEEDED/)
    assert.equal(repeated.status, 200)
    await until(
      'the database is back',
      () => rig.indexer.status().restarts === restarts + 1 && rig.indexer.status().state === 'running',
      60_000,
    )
    const head = rig.indexer.status().ingest?.headSlot ?? 0
    await until('ingest continues', () => (rig.indexer.status().ingest?.headSlot ?? 0) > head, 60_000)
    assert.equal((await ask(other.headers)).status, 200)
  })

  test('a query that exhausts the memory is refused together with its subscription', async () => {
    // Enough time to exhaust the memory, on a busy machine too.
    await using roomy = await startIndexerRig({
      query: { secondsMax: 100 },
      store: { memoryBytes: 128 * 1024 * 1024, residentBytesMax: 400 * 1024 * 1024 },
    })
    const { headers } = await roomy.subscribe('greedy')
    const { restarts } = roomy.indexer.status()
    // A text of 2 GB, built in memory that the engine does not count against its own limit.
    const body = `SELECT length(replaceAll('${'x'.repeat(100_000)}', 'x', '${'y'.repeat(20_000)}'))`
    const response = await fetch(roomy.url, { method: 'POST', headers, body })
    assert.match(await response.text(), /MEMORY_LIMIT_EXCEEDED/)
    // At once: the refusal of 30 s may be over when the database has restarted.
    const again = await fetch(roomy.url, { method: 'POST', headers, body: 'SELECT 1' })
    assert.equal(again.status, 429)
    assert.ok(Number(again.headers.get('retry-after')) >= 20)
    await until('the database was ended', () => roomy.indexer.status().restarts > restarts, 60_000)
    await until('it is back', () => roomy.indexer.status().state === 'running', 60_000)
  })
})
