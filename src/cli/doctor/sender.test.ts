import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import type { GrantedSchedule } from '../../platform/native/thread-schedule.ts'
import { openControlSocket } from '../../platform/process/control-socket.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { type ConfigSection, configSchema } from '../../processes/compose/config/config.ts'
import { checkSender } from './sender.ts'

const TIP = 'DXyM8yAHqpMzDtvwz5DXoEUQmPxjJPMKCASCPhLMKpEx'

test('checks tip accounts, the identity file and the paths of a running sender', async () => {
  using home = makeTestFolder()
  const look = async (sender: object, sections: readonly ConfigSection[] = ['metrics', 'sender', 'upstreams']) => {
    const at = { folder: home.path, stateDir: home.path, sections }
    const findings = await checkSender(configSchema.parse({ sender }), at)
    return findings.map(({ check, level, message }) => `${level} ${check}: ${message}`)
  }
  assert.deepEqual(await look({}, ['metrics', 'shreds']), [])
  assert.equal((await look({ enabled: false })).length, 1, 'a process of its own runs it')
  assert.match((await look({})).join(), /^ok tip accounts: none yet/)
  assert.match(
    (await look({ tipAccounts: [TIP] })).join(),
    /^ok tip accounts: 1 in the config; their keys are not in the backup/,
  )

  const quic = { identity: 'identity.json' }
  assert.match(
    (await look({ quic })).at(-1) ?? '',
    /^bad sender identity: .*identity\.json of sender\.quic\.identity does not exist/,
  )
  writeFileSync(home.file('identity.json'), '[]')
  chmodSync(home.file('identity.json'), 0o644)
  assert.match((await look({ quic })).at(-1) ?? '', /^bad sender identity: .*0644/)

  let schedule: GrantedSchedule | undefined
  let pathStates = [{ path: 'upstreams', isOpen: false, message: '' }]
  await using _socket = await openControlSocket(home.file('control.sock'), {
    log: silentLogger,
    methods: { 'tip-stats': () => ({ pathStates, schedule }) },
  })
  assert.match((await look({})).at(-1) ?? '', /^bad sender paths: no path to a leader is open/)
  pathStates = [
    { path: 'upstreams', isOpen: true, message: '' },
    { path: 'relay', isOpen: false, message: '' },
    { path: 'quic', isOpen: false, message: 'no QUIC address of a leader is known' },
  ]
  assert.deepEqual((await look({})).slice(1), [
    'ok sender paths: upstreams',
    'warn sender paths: relay is closed',
    'ok sender paths: quic: no QUIC address of a leader is known (closed)',
  ])
  schedule = { priority: 'raised', core: null, refused: [] }
  assert.equal(
    (await look({})).at(-1),
    'ok sender priority: priority raised within this service (CPUWeight= of its unit: against others)',
  )
  schedule = { priority: 'normal', core: null, refused: ['priority raised: not permitted'] }
  assert.equal((await look({})).at(-1), 'warn sender priority: priority normal; priority raised: not permitted')
})
