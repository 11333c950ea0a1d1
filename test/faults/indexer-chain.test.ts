import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { startIndexerRig } from '../support/indexer/start.ts'

const START_MS = 60_000

test('tables of one chain are not continued with blocks of another: ingest stops with a reason, queries continue', async () => {
  using folder = makeTestFolder()
  const dataFile = join(folder.path, 'chain.duckdb')
  let headSlot = 0
  {
    await using first = await startIndexerRig({}, undefined, { dataFile })
    await until('blocks are written', () => (first.indexer.status().ingest?.blocks ?? 0) > 8, START_MS)
    headSlot = first.indexer.status().ingest?.headSlot ?? 0
  }
  let degraded = ''
  const lifecycle = {
    degraded: (part: string, reason: string) => void (degraded = `${part}: ${reason}`),
    recovered() {},
  }
  await using second = await startIndexerRig({}, undefined, { dataFile, lifecycle })
  await until('ingest has stopped', () => second.indexer.status().stopped !== undefined, START_MS)
  const { stopped, ingest } = second.indexer.status()
  assert.equal(stopped?.reason, 'other-chain')
  assert.match(stopped.message, /^the tables are of the chain with genesis \w+, the nodes of \w+$/)
  assert.equal(ingest?.blocks, 0)
  assert.ok((ingest?.headSlot ?? 0) >= headSlot)
  await until('the process is degraded', () => degraded !== '', START_MS)
  assert.match(
    degraded,
    /^indexer: writes no blocks: the tables are of the chain .*; correct upstreams\.nodes, or move /,
  )
  assert.ok(degraded.includes(`move ${folder.path} away`), degraded)
  assert.equal(second.indexer.backfill({ from: 1, to: 2 }), 'other-chain')
  const { headers } = await second.subscribe('reader')
  const response = await fetch(second.url, { method: 'POST', headers, body: 'SELECT count() > 8 FROM blocks' })
  assert.deepEqual([response.status, await response.text()], [200, '1\n'])
})
