import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { WebSocket } from 'ws'
import { temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

/** The first use: start it, and paste the printed lines. */
test('every line to paste on the handover card works as printed, against the embedded chain', async () => {
  await using home = await temporaryFolder()
  await using running = serve({
    cwd: home.path,
    env: { SLUICE_LOCALNET__ENABLED: 'true', SLUICE_LOCALNET__SLOT_MS: '100' },
  })
  await running.line(/"msg":"started"/)
  const lines = running
    .stdout()
    .split('\n')
    .map((line) => /^ +(curl .*)$/.exec(line)?.[1])
    .filter((line) => line !== undefined)
  assert.equal(lines.length, 3, running.stdout())
  const responses = []
  for (const line of lines) {
    const { stdout } = await promisify(execFile)('sh', ['-c', line.replace(/^curl /, 'curl -sS --fail-with-body ')])
    responses.push(JSON.parse(stdout) as Record<string, unknown>)
  }
  assert.equal(typeof responses[0]?.['result'], 'number')
  const socket = new WebSocket(String(responses[1]?.['url']))
  socket.on('open', () => socket.send('{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}'))
  const [first] = (await once(socket, 'message')) as [Buffer]
  assert.equal(typeof (JSON.parse(first.toString()) as { result: unknown }).result, 'number')
  socket.terminate()
  assert.equal(responses[2]?.['subscription'], 'demo')

  // As wscat does it: the header at the handshake, the text of -x when the connection is open.
  const wscat = /^ +npx wscat -H 'x-token: (\S+)' -w 10 -x '(.+)' -c (\S+)$/m.exec(running.stdout()) ?? []
  const [, token = '', text = '', url = ''] = wscat
  const direct = new WebSocket(url, { headers: { 'x-token': token } })
  direct.on('open', () => direct.send(text))
  const [subscribed] = (await once(direct, 'message')) as [Buffer]
  assert.equal(typeof (JSON.parse(subscribed.toString()) as { result: unknown }).result, 'number')
  direct.terminate()
  const [, grpc] =
    /^ +grpcurl -plaintext -H 'x-token: \S+' (\S+) geyser\.Geyser\/GetVersion$/m.exec(running.stdout()) ?? []
  assert.equal(grpc, await running.address('grpc'))
  assert.equal(responses[2]?.['plan'], 'professional')

  const shown = running.stdout().split('\n')
  const exports = shown.filter((line) => line.startsWith('  export ')).map((line) => line.trim())
  const asked = `${exports.join('\n')}\ncurl -sf -H "x-token: $SLUICE_TOKEN" "$SLUICE_RPC/v1/whoami"; printf '\\n%s' "$SLUICE_WS" "$SLUICE_GRPC" "$SLUICE_SEND"`
  const { stdout } = await promisify(execFile)('sh', ['-c', asked])
  const [whoami = '', ...addresses] = stdout.split('\n')
  assert.equal((JSON.parse(whoami) as { subscription: string }).subscription, 'demo')
  assert.deepEqual(
    addresses.map((address) => new URL(address).protocol),
    ['ws:', 'http:', 'http:'],
  )
  for (const line of shown.slice(
    0,
    shown.findIndex((text) => text.startsWith('  # ')),
  )) {
    if (!line.startsWith('{')) assert.ok(line.length <= 80, `too long for a narrow terminal: ${line}`)
  }
})
