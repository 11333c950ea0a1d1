import assert from 'node:assert/strict'
import { renameSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { test } from 'node:test'
import { temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

const NO_MEMORY = '{"error":"no-memory","message":"the server is at its memory limit; retry"}'
const CALL = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }

test('refuses new connections with 503 no-memory at residentBytesMax, and serves the operator listener', async () => {
  await using home = await temporaryFolder()
  // Less than any Node process uses: the limit is reached from the start.
  const env = { SLUICE_MEMORY__RESIDENT_BYTES_MAX: String(64 * 2 ** 20) }
  await using served = serve({ cwd: home.path, args: ['--no-demo'], env })
  await served.line(/"pressure":"no-new-sockets".*"msg":"memory pressure changed"/)
  await served.line(/"msg":"started"/)
  const call = await fetch(`http://${await served.address('rpc')}/`, CALL)
  assert.deepEqual([call.status, await call.text()], [503, NO_MEMORY])
  const upgrade = await fetch(`http://${await served.address('ws')}/`)
  assert.deepEqual([upgrade.status, await upgrade.text()], [503, NO_MEMORY])
  const metrics = await (await fetch(`http://${await served.address('metrics')}/metrics`)).text()
  for (const server of ['rpc', 'ws']) {
    assert.match(
      metrics,
      new RegExp(`^sluice_process_connections_refused_total\\{listener="${server}",reason="memory",.*\\} 1$`, 'm'),
    )
  }
})

test('accepts connections far below residentBytesMax', async () => {
  await using home = await temporaryFolder()
  await using served = serve({ cwd: home.path, args: ['--no-demo'] })
  await served.line(/"msg":"started"/)
  assert.equal((await fetch(`http://${await served.address('rpc')}/`, CALL)).status, 401)
  assert.doesNotMatch(served.stdout(), /memory pressure/)
})

/** Servers of streams refuse new connections at a lower memory share than servers of calls. */
const STREAMS = ['ws', 'grpc', 'execution']
const CALLS = ['rpc', 'sender', 'indexer']

test('stream servers refuse new connections at 80 % of residentBytesMax, call servers at 90 %, and all accept again below', async () => {
  await using home = await temporaryFolder()
  const ceiling = 1000 * 2 ** 20
  const setShare = (share: number) => {
    writeFileSync(home.file('next'), String(Math.round(ceiling * share)))
    // Replaced atomically: it is read while it is written.
    renameSync(home.file('next'), home.file('resident'))
  }
  setShare(0.5)
  await using served = serve({
    cwd: home.path,
    args: ['--no-demo'],
    env: {
      SLUICE_MEMORY__RESIDENT_BYTES_MAX: String(ceiling),
      SLUICE_EXECUTION__ENABLED: 'true',
      SLUICE_INDEXER__ENABLED: 'true',
      NODE_OPTIONS: `--import ${new URL('../support/machine/resident-bytes.ts', import.meta.url).href}`,
      TEST_RESIDENT_BYTES_FILE: home.file('resident'),
    },
  })
  await served.line(/"msg":"started"/)
  const refused = async () => {
    const text = await (await fetch(`http://${await served.address('metrics')}/metrics`)).text()
    const count = (server: string) =>
      Number(
        new RegExp(
          `^sluice_process_connections_refused_total\\{listener="${server}",reason="memory",.*\\} (\\d+)$`,
          'm',
        ).exec(text)?.[1] ?? 0,
      )
    return new Map([...STREAMS, ...CALLS].map((server) => [server, count(server)]))
  }
  /** The servers that refuse a new connection now. */
  const shut = async () => {
    const before = await refused()
    for (const server of before.keys()) await knock(await served.address(server))
    const after = await refused()
    return [...after.keys()].filter((endpoint) => after.get(endpoint) !== before.get(endpoint))
  }
  assert.deepEqual(await shut(), [])
  for (const [share, pressure, servers] of [
    [0.85, 'no-new-streams', STREAMS],
    [0.95, 'no-new-sockets', [...STREAMS, ...CALLS]],
    [0.5, 'none', []],
  ] as const) {
    setShare(share)
    await served.line(new RegExp(`"pressure":"${pressure}".*"msg":"memory pressure changed"`))
    assert.deepEqual(await shut(), servers, pressure)
  }
})

/** Connects, sends a request, and waits for the first bytes of a response or for the close. */
async function knock(address: string): Promise<void> {
  const { hostname, port } = new URL(`http://${address}`)
  const { promise, resolve } = Promise.withResolvers<void>()
  const socket = connect(Number(port), hostname, () => socket.write('GET /ping HTTP/1.1\r\nhost: here\r\n\r\n'))
  socket.on('error', () => {})
  socket.once('data', () => resolve())
  socket.once('close', () => resolve())
  await promise
  socket.destroy()
}
