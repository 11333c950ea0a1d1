import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { sluice, temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

const SECRET = `whsec_${Buffer.from('a secret of the operator').toString('base64')}`

type Received = { readonly headers: Record<string, string | string[] | undefined>; readonly body: string }

test('serve sends signed notices to a webhook and a command, and lists them', async () => {
  await using home = await temporaryFolder()
  const received: Received[] = []
  const hook = createServer((request, response) => {
    void text(request).then((body) => {
      received.push({ headers: request.headers, body })
      response.statusCode = 204
      response.end()
    })
  })
  hook.listen(0, '127.0.0.1')
  await once(hook, 'listening')
  using _close = { [Symbol.dispose]: () => void hook.close() }
  const { port } = hook.address() as AddressInfo
  writeFileSync(home.file('secret'), SECRET, { mode: 0o600 })
  writeFileSync(
    home.file('sluice.toml'),
    `[notices]
command = ["${process.execPath}", "-e", "const fs = require('node:fs'); fs.writeFileSync('${home.file('env')}', JSON.stringify(process.env)); process.stdin.pipe(fs.createWriteStream('${home.file('seen')}'))"]
[[notices.webhooks]]
name = "ops"
url = "http://127.0.0.1:${port}/hook"
secrets = ["file:secret"]
`,
  )
  await using running = serve({ cwd: home.path, env: { SECRET_OF_THE_SERVICE: SECRET } })
  await running.line(/"msg":"started"/)
  const run = (...words: string[]) => sluice(words, { cwd: home.path })
  const sent = await run('notice', 'test')
  assert.equal(sent.code, 0, sent.stderr)
  assert.match(sent.stderr, /ntc_[0-9A-Z]{26} is being sent to ops, command/)

  await until('the webhook has it', () => received.length > 0)
  const { headers, body } = received[0] as Received
  const signed = [headers['webhook-id'], headers['webhook-timestamp'], body].join('.')
  const key = Buffer.from('a secret of the operator')
  assert.equal(headers['webhook-signature'], `v1,${createHmac('sha256', key).update(signed).digest('base64')}`)

  await until('both have it', async () => {
    const { stdout } = await run('notice', 'list', '--json')
    const [notice] = JSON.parse(stdout) as { kind: string; delivery: string[] }[]
    assert.equal(notice?.kind, 'test')
    return notice.delivery.every((line) => line.endsWith(' delivered')) && notice.delivery.length === 2
  })
  const env = JSON.parse(readFileSync(home.file('env'), 'utf8')) as Record<string, string>
  assert.ok(env['PATH'], 'a program needs a search path')
  assert.ok(!Object.values(env).includes(SECRET) && !('SECRET_OF_THE_SERVICE' in env), 'and no secret of the service')
  const list = await run('notice', 'list')
  assert.match(list.stdout, /test\s+ops delivered,command delivered/)
  await running.stop()
  assert.ok(!`${running.stdout()}${running.stderr()}`.includes(SECRET), 'the secret is in no log line')
})

test('without a receiver the commands name the way to one', async () => {
  await using home = await temporaryFolder()
  await using running = serve({ cwd: home.path })
  await running.line(/"msg":"started"/)
  const { code, stderr } = await sluice(['notice', 'test'], { cwd: home.path })
  assert.notEqual(code, 0)
  assert.match(stderr, /no receiver of notices is configured/)
  assert.match(stderr, /notices\.webhooks/)
})
