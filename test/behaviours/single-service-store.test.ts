import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

const NODE = '[[upstreams.nodes]]\nname = "a"\nrpc = "http://127.0.0.1:1"\nallowPrivate = true\n'

for (const command of ['gateway', 'indexer run', 'shreds', 'execution'] as const) {
  test(`sluice ${command} on a folder without a store exits with 78 and makes none; on one that was made it starts`, async () => {
    await using home = await temporaryFolder()
    const [file, state] = [home.file('sluice.toml'), home.file('state')]
    writeFileSync(file, `[execution]\nauth = "token"\nsimulated = true\n${NODE}`)
    const args = ['--config', file, '--state', state]
    {
      await using refused = serve({ cwd: home.path, command, args })
      assert.equal(await refused.exit(), 78)
      assert.match(refused.stderr(), /access\.db does not exist[^]*PostgreSQL/)
    }
    assert.ok(!existsSync(`${state}/access.db`))
    const made = await sluiceHere(['customer', 'add', 'acme', ...args], {})
    assert.equal(made.code, 0, made.stderr)
    await using running = serve({ cwd: home.path, command, args })
    await running.line(/"msg":"started"/)
  })
}
