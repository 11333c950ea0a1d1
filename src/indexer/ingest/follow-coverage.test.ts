import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { until } from '../../platform/process/test-wait.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { parseIndexerOptions } from '../options.ts'
import { followCoverage } from './follow-coverage.ts'

test('reports the progress of another writer, also while the server is unreachable, and writes nothing', async () => {
  const statements: string[] = []
  let progress: unknown[] | undefined
  const server = createServer((request, response) => {
    request.on('data', (piece: Buffer) => statements.push(piece.toString()))
    request.on('end', () => {
      response.statusCode = progress === undefined ? 500 : 200
      response.end(
        progress === undefined ? 'Code: 60. DB::Exception: no table yet' : JSON.stringify({ data: [progress] }),
      )
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const clock = createManualClock()
  const upstream = { bestSlot: 25, isAvailable: true }
  const follower = followCoverage(
    { url: `http://127.0.0.1:${port}`, user: 'u', password: 'p', database: 'solana' },
    { clock, log: silentLogger, upstream },
  )
  const poll = async (holds: () => boolean) => {
    await until('a poll', () => {
      clock.advance(1000)
      return holds()
    })
  }
  await poll(() => statements.length > 0)
  assert.deepEqual([follower.status().state, follower.status().ingest], ['opening', undefined])

  progress = ['7', '10-20:x', '15', '23', ['1', '10'], ['5', '20'], '0', '', '0', '0']
  await poll(() => follower.status().state === 'running')
  const { ingests, ingest } = follower.status()
  // The tip is that of the chain, not the one that the writer saw at its last write.
  assert.deepEqual([ingests, ingest?.headSlot, ingest?.tipSlot], [false, 20, 25])
  upstream.isAvailable = false
  assert.equal(follower.status().ingest?.tipSlot, undefined)

  progress = undefined
  await poll(() => follower.status().state === 'opening')
  assert.equal(follower.status().ingest?.headSlot, 20)
  assert.equal(follower.store(), undefined)

  await follower[Symbol.asyncDispose]()
  assert.equal(follower.status().state, 'closed')
  assert.ok(statements.every((text) => text.startsWith('SELECT')))
  server.closeAllConnections()
  server.close()
})

test('ingest can be disabled only with ClickHouse, where another process can write', () => {
  const clickhouse = { url: 'http://10.0.0.1:8123', user: 'u', password: 'env:P' }
  assert.equal(parseIndexerOptions().ingest.enabled, true)
  const options = parseIndexerOptions({ engine: 'clickhouse', clickhouse, ingest: { enabled: false } })
  assert.equal(options.ingest.enabled, false)
  assert.throws(() => parseIndexerOptions({ ingest: { enabled: false } }), /needs engine = \\?"clickhouse/)
})
