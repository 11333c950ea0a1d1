import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startHttpServer } from '../../../test/support/machine/http-server.ts'
import { type ConfigSection, configSchema } from '../../processes/compose/config/config.ts'
import { checkServices } from './services.ts'

/** Nothing listens there. */
const DEAD = 'http://127.0.0.1:1'

async function examined(url: string, sections: readonly ConfigSection[] = ['indexer']) {
  const clickhouse = { url, user: 'gateway', password: 'env:PASSWORD' }
  const accounts = { user: 'accounts', password: 'env:PASSWORD' }
  const config = configSchema.parse({ indexer: { engine: 'clickhouse', clickhouse: { ...clickhouse, accounts } } })
  const findings = await checkServices(config, { env: { PASSWORD: 'p' }, sections })
  return findings.map((finding) => [finding.level, finding.message, 'fix' in finding ? finding.fix : ''].join(' | '))
}

test('ClickHouse is asked as each account of the gateway: it responds, refuses the password, or is away', async () => {
  let refused = ''
  await using server = await startHttpServer((request, response) => {
    const [user] = Buffer.from(request.headers.authorization?.split(' ')[1] ?? '', 'base64')
      .toString()
      .split(':')
    if (user === refused)
      response.writeHead(403, { 'x-clickhouse-exception-code': '516' }).end(`Code: 516. DB::Exception: ${user}: wrong`)
    else response.end('1\n')
  })
  assert.deepEqual(await examined(server.url), [
    `ok | ${server.url} as gateway | `,
    `ok | ${server.url} as accounts | `,
  ])
  refused = 'gateway'
  const [first, second] = await examined(server.url)
  assert.match(first ?? '', /^bad \| \S+ refuses gateway: Code: 516.* \| correct the password of gateway/)
  assert.match(second ?? '', /^ok /)
  for (const finding of await examined(DEAD))
    assert.match(finding, /^bad \| http:\/\/127\.0\.0\.1:1 does not respond: .* \| systemctl start clickhouse-server/)
  assert.deepEqual(await examined(DEAD, ['sender']), [], 'this process does not use it')
})
