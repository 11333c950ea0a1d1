import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startHttpServer } from '../../../test/support/machine/http-server.ts'
import { configSchema } from '../../processes/compose/config/config.ts'
import { checkExecutionSource } from './execution.ts'

async function examined(rpc: string) {
  const config = configSchema.parse({ execution: { node: { rpc } } })
  const findings = await checkExecutionSource(config, { env: {}, folder: '.', sections: ['execution'] })
  return findings.map(({ level, message }) => `${level} ${message}`)
}

test('the EVM node is asked for its chain; one that is away is a failure without its address', async () => {
  await using server = await startHttpServer((_request, response) => {
    response.setHeader('content-type', 'application/json').end('{"jsonrpc":"2.0","id":1,"result":"0x279f"}')
  })
  assert.deepEqual(await examined(server.url), ['ok execution.node responds; its chain has the id 10143'])
  assert.deepEqual(await examined('http://127.0.0.1:1'), [
    'bad execution.node does not respond: eth_chainId: no connection',
  ])
})
