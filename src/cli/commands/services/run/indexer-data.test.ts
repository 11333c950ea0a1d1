import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sluiceHere } from '../../../../../test/support/cli/in-process.ts'
import { temporaryFolder } from '../../../../../test/support/cli/run.ts'
import { startHttpServer } from '../../../../../test/support/machine/http-server.ts'
import { createAdminToken } from '../../../../access/token.ts'
import { openControlSocket } from '../../../../platform/process/control-socket.ts'
import { secureRandom } from '../../../../platform/process/random.ts'
import { silentLogger } from '../../../../platform/telemetry/logger.ts'

test('a remote status prints the coverage as the database does: lists in brackets, and \\N for no value', async () => {
  const row = { table_name: 'blocks', from_slot: 1, to_slot: 90, lag_slots: null, lag_seconds: 0.5, open_gaps: 2 }
  const status = { state: 'running', ingests: true, running_queries: 0, restarts: 0 }
  const coverage = [
    { ...row, missing_slots: ['5-7', '9-9'] },
    { ...row, table_name: 'transactions', missing_slots: [] },
  ]
  await using server = await startHttpServer((_request, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ ...status, coverage }))
  })
  const env = { SLUICE_ADMIN_TOKEN: createAdminToken(secureRandom).secret }
  const { code, stdout, stderr } = await sluiceHere(['--remote', server.url, 'indexer', 'status'], env)
  assert.equal(code, 0, stderr)
  const lines = stdout.trimEnd().split('\n').slice(-3)
  assert.deepEqual(
    lines.map((line) => line.trimEnd().split(/ {2,}/)),
    [
      ['table_name', 'from_slot', 'to_slot', 'lag_slots', 'lag_seconds', 'open_gaps', 'missing_slots'],
      ['blocks', '1', '90', '\\N', '0.5', '2', "['5-7','9-9']"],
      ['transactions', '1', '90', '\\N', '0.5', '2', '[]'],
    ],
  )
})

test('a backfill that the database ended is not reported as a lack of nodes', async () => {
  await using home = await temporaryFolder()
  for (const [failedBy, code, word] of [
    ['nodes', 69, 'no-upstream'],
    ['database', 1, 'internal'],
  ] as const) {
    const ended = { from: 1, to: 90, nextSlot: 33, blocks: 32, startedMs: 0, state: 'failed', message: 'no', failedBy }
    const methods = { indexer: () => ({ backfill: ended }), 'indexer-backfill': () => ({ outcome: 'started' }) }
    await using _process = await openControlSocket(home.file('control.sock'), { log: silentLogger, methods })
    const result = await sluiceHere(['indexer', 'backfill', '1', '90', '--state', home.path])
    assert.equal(result.code, code, result.stderr)
    assert.match(result.stderr, new RegExp(word))
    assert.match(result.stderr, /sluice indexer backfill 33 90/)
  }
})
