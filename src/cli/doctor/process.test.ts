import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { openControlSocket } from '../../platform/process/control-socket.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { checkProcess } from './process.ts'

test('every degraded part of the running process is a failure', async () => {
  using home = makeTestFolder()
  const findings = async () =>
    (await checkProcess(home.path)).map(({ check, level, message }) => `${level} ${check} ${message}`)
  assert.deepEqual(await findings(), [], 'no process runs')

  let reasons: object[] = []
  await using _socket = await openControlSocket(home.file('control.sock'), {
    log: silentLogger,
    methods: { status: () => ({ state: 'ok', reasons, pid: 7 }) },
  })
  assert.deepEqual(await findings(), ['ok process 7: ok'])
  reasons = [
    { part: 'indexer', reason: 'the tables are 2 hours behind', sinceMs: 0 },
    { part: 'disk', reason: 'full', sinceMs: 1000 },
  ]
  assert.deepEqual(await findings(), [
    'bad process 7: indexer: the tables are 2 hours behind, since 1970-01-01 00:00:00 UTC',
    'bad process 7: disk: full, since 1970-01-01 00:00:01 UTC',
  ])
})
