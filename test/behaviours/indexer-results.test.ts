import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { loadMemoryRelease } from '../../src/platform/process/memory-release.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { type IndexerAccount, type IndexerRig, startIndexerRig } from '../support/indexer/start.ts'

const ROWS = 'SELECT a.slot, a.signature, b.signature FROM transactions a, transactions b, blocks c'
/** Some 8 MB, more than the buffers of a loopback connection. */
const LARGE = `${ROWS} LIMIT 40000`
/** Some 20 MB. */
const LARGEST = `${ROWS} LIMIT 100000`

/** Memory outside the heap, buffers included, after garbage collection. */
async function bytesInUse(): Promise<number> {
  const { collect } = await loadMemoryRelease()
  collect()
  return process.memoryUsage().external
}

describe('results that the client does not read', () => {
  let rig: IndexerRig
  let slow: IndexerAccount
  let other: IndexerAccount

  before(async () => {
    rig = await startIndexerRig({
      query: {
        concurrent: 8,
        concurrentPerSubscription: 2,
        heldBytesMax: 2 ** 27,
        waitSecondsMax: 1,
        // Longer than a busy machine keeps a client from reading.
        readSecondsMax: 6,
      },
    })
    slow = await rig.subscribe('slow')
    other = await rig.subscribe('other')
    await until('there are rows', async () => Number(await ask(other, 'SELECT count() FROM transactions')) > 200)
  })
  after(() => rig[Symbol.asyncDispose]())

  async function ask(account: IndexerAccount, query: string): Promise<string> {
    const response = await fetch(rig.url, { method: 'POST', headers: account.headers, body: query })
    return (response.ok ? '' : `${response.status} `) + (await response.text())
  }

  /** Requests a large result and reads only its first bytes. */
  async function stall(account: IndexerAccount, query: string = LARGE): Promise<Socket> {
    const socket = connect(Number(new URL(rig.url).port), '127.0.0.1')
    const headers = Object.entries(account.headers).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.write(`POST / HTTP/1.1\r\nhost: x\r\n${headers.join('')}content-length: ${query.length}\r\n\r\n${query}`)
    const [bytes] = (await once(socket, 'data')) as [Buffer]
    assert.match(bytes.toString('latin1'), /^HTTP\/1\.1 200 /)
    socket.pause()
    return socket.on('error', () => {})
  }

  test('hold permits of their own subscription only, and the refusal names the limit', async () => {
    const sockets = await Promise.all([stall(slow), stall(slow)])
    assert.equal(rig.indexer.status().runningQueries, 2)
    const refused = await ask(slow, 'SELECT 1')
    assert.match(
      refused,
      /^429 Code: 202\..*indexer\.query\.concurrentPerSubscription is 2.*TOO_MANY_SIMULTANEOUS_QUERIES/,
    )
    assert.equal(await ask(other, 'SELECT 1'), '1\n')
    for (const socket of sockets) socket.destroy()
    await until('the permits are free', () => rig.indexer.status().runningQueries === 0)
    assert.equal(await ask(slow, 'SELECT 1'), '1\n')
  })

  test('stay in the database process until they are read', async () => {
    const before = await bytesInUse()
    const sockets = await Promise.all([stall(slow, LARGEST), stall(slow, LARGEST), stall(other, LARGEST)])
    const grown = (await bytesInUse()) - before
    for (const socket of sockets) socket.destroy()
    assert.ok(grown < 30e6, `${grown} bytes of three results`)
    await until('the permits are free', () => rig.indexer.status().runningQueries === 0)
  })

  test('are dropped and the connection closed after readSecondsMax', async () => {
    const socket = await stall(slow)
    await until('the connection is closed', () => rig.indexer.status().runningQueries === 0, 16_000)
    socket.destroy()
  })

  test('a refused query is not charged', async () => {
    const { access } = rig.gateway
    const used = (): number => {
      const caller = access.authenticate({ token: slow.token }, 'indexer', Date.now())
      assert.ok(caller.ok)
      return access.quota(caller).month.used
    }
    const sockets = await Promise.all([stall(slow), stall(slow)])
    const before = used()
    assert.match(await ask(slow, 'SELECT 1'), /^429 /)
    assert.equal(used(), before)
    assert.ok(before > 0)
    for (const socket of sockets) socket.destroy()
    await until('the permits are free', () => rig.indexer.status().runningQueries === 0)
    for (const statement of ['DROP TABLE blocks', 'SELEC 1', 'SELECT * FROM other'])
      assert.match(await ask(slow, statement), /^4\d\d /, statement)
    assert.equal(used(), before, 'statements that their checks refuse')
  })

  test('count as usage with the bytes of their bodies as sent, and for a client that leaves at least with those it has', async () => {
    const { access, on } = rig.gateway
    const account = await rig.subscribe('counted')
    const caller = access.authenticate({ token: account.token }, 'indexer', Date.now())
    assert.ok(caller.ok)
    const subscriptionId = caller.subscription.id
    const ledger = async () => {
      const rows = await on.store.usage({ subscriptionId })
      return rows.reduce((sum, { bytes }) => sum + bytes, 0)
    }
    let received = 0
    for (const [query, options] of [
      ['SELECT 1', ''],
      [LARGE, ''],
      [LARGE, '?enable_http_compression=1'],
      [LARGE, '?compress=1'],
    ] as const) {
      const bytes = await bodyBytes(account, query, options)
      assert.ok(bytes > (query === LARGE ? 100_000 : 1), `${bytes}`)
      received += bytes
    }
    await bodyBytes(account, 'SELECT nothing', '')
    await until('the ledger has them', async () => (await ledger()) >= received)
    assert.equal(await ledger(), received, 'the text of an error is no result')
    const socket = await stall(account, LARGEST)
    const head = socket.bytesRead
    socket.destroy()
    await until('the query has ended', () => rig.indexer.status().runningQueries === 0)
    await access.usage.flush()
    const counted = (await ledger()) - received
    assert.ok(counted > 0 && counted < 20_000_000 && counted + 2000 >= head, `${counted} bytes, ${head} received`)
  })

  /** Bytes of the body as they come, before they are inflated. Rejects when the response is cut. */
  async function bodyBytes({ headers }: IndexerAccount, query: string, options: string): Promise<number> {
    const fields = { ...headers, 'accept-encoding': 'gzip' }
    const sent = request(`${rig.url}/${options}`, { method: 'POST', headers: fields, agent: false }).end(query)
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    let bytes = 0
    for await (const chunk of response as AsyncIterable<Buffer>) bytes += chunk.length
    return bytes
  }

  test('are complete for a client that reads slowly but in time, uncompressed and compressed', async () => {
    for (const address of [rig.url, `${rig.url}/?enable_http_compression=1`]) {
      const response = await fetch(address, { method: 'POST', headers: other.headers, body: LARGE })
      const lines = (await response.text()).split('\n')
      assert.equal(lines.length, 40_001)
    }
  })
})
