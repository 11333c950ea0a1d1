import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { sluice } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'
import { startQuickLocalnet, upstreamsOf } from '../support/solana/localnet.ts'
import { makeStore } from '../support/store/make-store.ts'

test('sluice indexer run without an upstream node fails to start and names the option to set', async () => {
  using folder = makeTestFolder()
  const args = ['indexer', 'run', '--state', folder.file('state')]
  const { code, stderr, stdout } = await sluice(args, { cwd: folder.path })
  assert.equal(code, 78, stdout + stderr)
  assert.match(stderr, /sluice indexer run needs an upstream node[^]*upstreams\.nodes/)
})

test('sluice indexer run fills its tables, serves SQL to a customer, and the commands of the indexer work on it', async () => {
  await using node = await startQuickLocalnet()
  using folder = makeTestFolder()
  writeFileSync(folder.file('sluice.toml'), upstreamsOf(node))
  const args = ['--config', folder.file('sluice.toml'), '--state', folder.file('state')]
  await makeStore(folder.file('state'))
  await using indexer = serve({ command: 'indexer run', cwd: folder.path, args })
  const sql = await indexer.address('indexer')
  await indexer.line(/"msg":"started"/)
  const run = async (...words: string[]) => {
    const { code, stdout, stderr } = await sluice([...words, '--state', folder.file('state')])
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
    return stdout
  }

  await until('blocks are in the tables', async () =>
    (await run('indexer', 'query', 'select count() > 3 as c from blocks', '--format', 'TabSeparated')).startsWith('1'),
  )
  assert.match(await run('indexer', 'status'), /blocks/)
  await run('indexer', 'backfill', '1', '2')
  await run('customer', 'add', 'acme')
  const made = await run(
    'sub',
    'create',
    'sql',
    '--customer',
    'acme',
    '--products',
    'indexer',
    '--print-token',
    '--json',
  )
  const { token } = JSON.parse(made) as { token: string }
  const granted = JSON.parse(await run('indexer', 'rotate', 'sql', '--yes', '--print-token', '--json')) as {
    username: string
    password: string
  }
  const login = Buffer.from(`${granted.username}:${granted.password}`).toString('base64')
  const headers = { authorization: `Basic ${login}`, 'x-token': token }
  await until('the customer may query', async () => {
    const response = await fetch(`http://${sql}/?query=${encodeURIComponent('select 1')}`, { headers })
    return response.status === 200 && (await response.text()) === '1\n'
  })

  const status = JSON.parse(await run('status', '--json')) as { services: { name: string }[] }
  assert.deepEqual(status.services.map(({ name }) => name).toSorted(), ['indexer', 'metrics'])
  const second = await sluice(['indexer', 'run', ...args], { cwd: folder.path })
  assert.notEqual(second.code, 0)
  assert.match(second.stderr, /already runs on the state folder/)
  await run('drain', '--yes')
  assert.equal(await indexer.exit(), 0)
})
