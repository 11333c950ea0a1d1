import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { openListener } from '../../src/platform/net/listener.ts'
import { sluice, temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'
import { makeStore } from '../support/store/make-store.ts'

for (const command of ['shreds', 'sender', 'gateway', 'indexer run', 'execution'] as const) {
  test(`a standalone ${command} process reloads: a changed value is in effect, an invalid file changes nothing`, async () => {
    await using home = await temporaryFolder()
    const file = home.file('sluice.toml')
    const node =
      '[execution]\nsimulated = true\n[[upstreams.nodes]]\nname = "a"\nrpc = "http://127.0.0.1:1"\nallowPrivate = true\n'
    writeFileSync(file, node)
    await makeStore(home.file('state'))
    await using running = serve({ cwd: home.path, command, args: ['--config', file, '--state', home.file('state')] })
    await running.line(/"msg":"started"/)
    const reload = () => sluice(['reload', '--state', home.file('state')], { cwd: home.path })

    writeFileSync(file, `[log]\nlevel = "warn"\n[drain]\ndeadlineMs = 20000\n${node}`)
    const changed = await reload()
    assert.equal(changed.code, 0, changed.stderr)
    assert.match(changed.stdout + changed.stderr, /log\.level is in effect/)
    assert.match(changed.stdout + changed.stderr, /drain\.deadlineMs needs a restart/)

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

test('a reload is refused with 78 when a restart would fail on this machine, and says why; nothing changes', async () => {
  await using home = await temporaryFolder()
  await using other = await openListener({ host: '127.0.0.1', port: 0 }, { onConnection: (socket) => socket.destroy() })
  const file = home.file('sluice.toml')
  const node = '[[upstreams.nodes]]\nname = "a"\nrpc = "http://127.0.0.1:1"\nallowPrivate = true\n'
  writeFileSync(file, `[sender]\nlisten = "127.0.0.1:0"\n${node}`)
  await using running = serve({
    cwd: home.path,
    command: 'sender',
    args: ['--config', file, '--state', home.file('state')],
    // The address is that of the file.
    env: { SLUICE_SENDER__LISTEN: undefined },
  })
  await running.line(/"msg":"started"/)
  const refusals: [sender: string, reason: RegExp][] = [
    ['listen = "127.0.0.1:0"\ntls = { cert = "missing.pem", key = "missing.key" }', /sender: .*missing\.pem/],
    ['listen = "192.0.2.1:8901"\nplaintext = "behind-proxy"', /192\.0\.2\.1:8901 is not an address of this machine/],
    [
      `listen = "127.0.0.1:${other.address.port}"`,
      new RegExp(`127\\.0\\.0\\.1:${other.address.port} is in use by another`),
    ],
    ['listen = "0.0.0.0:8901"', /sender: .*public address without TLS/],
  ]
  for (const [sender, reason] of refusals) {
    writeFileSync(file, `[log]\nlevel = "error"\n[sender]\n${sender}\n${node}`)
    const { code, stderr } = await sluice(['reload', '--state', home.file('state')], { cwd: home.path })
    assert.equal(code, 78, stderr)
    assert.match(stderr, reason)
    assert.match(stderr, /the present configuration stays in effect/)
  }
  writeFileSync(file, `[log]\nlevel = "error"\n[sender]\nlisten = "127.0.0.1:0"\n${node}`)
  const good = await sluice(['reload', '--state', home.file('state')], { cwd: home.path })
  assert.equal(good.code, 0, good.stderr)
  assert.match(good.stderr, /log\.level is in effect/)
})
