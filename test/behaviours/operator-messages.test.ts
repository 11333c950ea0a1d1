import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { makeRingSnapshots } from '../support/execution/ring-snapshots.ts'

test('recording into a missing folder is one error with a fix', async () => {
  await using home = await temporaryFolder()
  makeRingSnapshots(home.path)
  const words = ['ring', 'record', home.file('nowhere/x.zst'), '--ring', home.file('snapshot.ring'), '--seconds', '1']
  const { code, stdout, stderr } = await sluiceHere(words, { SLUICE_STATE: home.file('.sluice') })
  assert.equal(code, 1)
  assert.equal(stdout, '')
  assert.match(stderr, /the folder .*nowhere does not exist/)
  assert.match(stderr, /mkdir -p/)
  assert.doesNotMatch(stderr, /\n\s+at /, 'no stack')
})

test('sub limit lists every limit, and reports every invalid value', async () => {
  await using home = await temporaryFolder()
  const run = (...words: string[]) => sluiceHere(words, { SLUICE_STATE: home.file('.sluice') })
  await run('customer', 'add', 'acme')
  await run('sub', 'create', 'acme-prod', '--customer', 'acme', '--print-token')
  const bare = await run('sub', 'limit', 'acme-prod')
  assert.equal(bare.code, 2)
  for (const flag of [
    '--plan',
    '--units-per-second',
    '--ws-subscriptions',
    '--grpc-accounts-per-stream',
    '--batch-items',
  ])
    assert.ok(bare.stderr.includes(flag), `${flag} is named`)
  const wrong = await run('sub', 'limit', 'acme-prod', '--units-per-second', 'lots', '--batch-items', 'unlimited')
  assert.notEqual(wrong.code, 0)
  assert.match(wrong.stderr, /"lots" is not a limit for units per second/)
  assert.match(wrong.stderr, /"unlimited" is not a limit for calls in one batch/)
  const large = await run('sub', 'limit', 'acme-prod', '--request-bytes', '99999999', '--batch-items', '99999999')
  assert.match(large.stderr, /requestBytes.*batchItems/s)
})
