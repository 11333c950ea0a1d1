import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sluice, temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

test('sluice serve creates tip accounts once and shows the same ones over HTTP, on the handover card and on the command line', async () => {
  await using home = await temporaryFolder()
  const run = (...words: string[]) => sluice(words, { cwd: home.path })
  let accounts: string[] = []
  {
    await using first = serve({ cwd: home.path })
    await first.line(/"msg":"started"/)
    const url = `http://${await first.address('sender')}`
    const tips = (await (await fetch(`${url}/tips`)).json()) as { min_tip_lamports: number; tip_accounts: string[] }
    accounts = tips.tip_accounts
    assert.deepEqual([tips.min_tip_lamports, accounts.length], [1_000_000, 5])
    for (const account of accounts) assert.ok(first.stdout().includes(account), 'the handover card names it')
    const stats = JSON.parse((await run('tip', 'stats', '--json')).stdout) as {
      accepted: number
      paths: { path: string }[]
    }
    assert.equal(stats.accepted, 0)
    assert.deepEqual(
      stats.paths.map(({ path }) => path),
      ['upstreams', 'quic'],
    )
    assert.match((await run('tip', 'stats')).stdout, /^accepted +0$/m)
    assert.equal(await first.stop(), 0)
  }
  const listed = JSON.parse((await run('tip', 'accounts', '--json')).stdout) as { account: string }[]
  assert.deepEqual(
    listed.map(({ account }) => account),
    accounts,
  )
})
