import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { sluice, temporaryFolder } from '../support/cli.ts'
import { serve } from '../support/serve.ts'

for (const command of ['shreds', 'sender'] as const) {
  test(`a standalone ${command} process reloads: a changed value is in effect, an invalid file changes nothing`, async () => {
    await using home = await temporaryFolder()
    const file = home.file('sluice.toml')
    const node = '[[upstreams.nodes]]\nname = "a"\nrpc = "http://127.0.0.1:1"\nallowPrivate = true\n'
    writeFileSync(file, node)
    await using running = serve({ cwd: home.path, command, args: ['--config', file, '--state', home.file('state')] })
    await running.line(/"msg":"started"/)
    const reload = () => sluice(['reload', '--state', home.file('state')], { cwd: home.path })

    writeFileSync(file, `[log]\nlevel = "warn"\n${node}`)
    const changed = await reload()
    assert.equal(changed.code, 0, changed.stderr)
    assert.match(changed.stdout + changed.stderr, /log\.level is in effect/)

    writeFileSync(file, `${node}[[upstreams.nodes]]\nname = "b"\nrpc = "http://127.0.0.1:2"\nallowPrivate = true\n`)
    const added = await reload()
    assert.equal(added.code, 0, added.stderr)

    writeFileSync(file, 'nonsense = 1\n')
    const refused = await reload()
    assert.equal(refused.code, 78)
    assert.match(refused.stderr, /nonsense/)
    assert.equal((await sluice(['status', '--state', home.file('state')], { cwd: home.path })).code, 0)
  })
}
