import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { CLICKHOUSE_ADMIN, startClickHouse } from '../support/indexer/clickhouse.ts'
import type { SmallDiskIndexerReport } from '../support/indexer/on-small-disk.ts'
import { startIndexerRig } from '../support/indexer/start.ts'

const PROGRAM = new URL('../support/indexer/on-small-disk.ts', import.meta.url).pathname

test('on a full disk a batch is refused completely, and written completely when there is space again', async () => {
  using folder = makeTestFolder()
  // A mount in a private namespace, which ends with the process; without root, in a user namespace.
  const isolate = process.getuid?.() === 0 ? '-m' : '-Urm'
  const script = 'mount -t tmpfs -o size=32m small "$1" && exec "$2" "$3" "$1"'
  const { stdout } = await promisify(execFile)('unshare', [
    ...[isolate, 'sh', '-c', script, 'sh', folder.path],
    ...[process.execPath, PROGRAM],
  ])
  const { faults, refused, restarts } = JSON.parse(stdout) as SmallDiskIndexerReport
  assert.deepEqual(faults, [])
  assert.ok(refused > 0 && restarts === refused, `${refused} batches were refused, ${restarts} restarts`)
})

test('with ClickHouse down the indexer starts in state opening, and catches up when the server is up', async () => {
  await using server = await startClickHouse()
  await server.kill()
  await using rig = await startIndexerRig({}, { url: server.url, ...CLICKHOUSE_ADMIN, database: 'late' })
  assert.equal(rig.indexer.status().state, 'opening')
  const { headers, username, password } = await rig.subscribe('early')
  const ask = (query: string) => fetch(rig.url, { method: 'POST', headers, body: query })
  const away = await ask('SELECT 1')
  assert.equal(away.status, 503)
  assert.match(await away.text(), /Code: 209\..*SOCKET_TIMEOUT/)
  await server.start()
  await server.setReaders([{ user: username, password }])
  await until('blocks are indexed', () => (rig.indexer.status().ingest?.blocks ?? 0) > 3, 60_000)
  assert.equal(rig.indexer.status().state, 'running')
  const first = await server.run('SELECT min(from_slot), max(open_gaps) FROM late.coverage')
  assert.match(first, /^\d+\t0\n$/)
  assert.equal((await ask('SELECT count() > 0 FROM blocks')).status, 200)
})
