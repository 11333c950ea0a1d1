import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { it } from 'node:test'
import { startFakeNode } from '../faults/fake-node.ts'
import { sluice, temporaryFolder } from '../support/cli.ts'
import { serve } from '../support/serve.ts'

const ENTRIES_MAX = 4
const CALLS = 24
const PUBLISHED_MS = 3000

it('two gateway threads together cache what `bundle.cache` allows', async () => {
  await using node = await startFakeNode()
  node.respond = (method) => (method === 'getBlock' ? { result: '{"blockhash":"x"}' } : undefined)
  await using folder = await temporaryFolder()
  await writeFile(
    folder.file('sluice.toml'),
    [
      `[bundle]\nworkers = 2\n[bundle.cache]\nenabled = true\nentriesMax = ${ENTRIES_MAX}`,
      '[sender]\nenabled = false\n[shreds]\nenabled = false',
      `[upstreams]\nallowPrivate = true\n[[upstreams.nodes]]\nname = "fake"\nrpc = "${node.rpc}"`,
    ].join('\n'),
  )
  const run = async (...words: string[]) => {
    const { code, stdout, stderr } = await sluice(words, { cwd: folder.path })
    assert.equal(code, 0, stderr)
    return stdout
  }
  await run('customer', 'add', 'acme')
  const unlimited = ['--units-per-second', 'unlimited', '--print-token', '--json']
  const { token } = JSON.parse(await run('sub', 'create', 'main', '--customer', 'acme', ...unlimited)) as {
    token: string
  }
  await using served = serve({ cwd: folder.path })
  const rpc = `http://${await served.address('rpc')}`
  const metrics = `http://${await served.address('metrics')}/metrics`
  await served.line(/"msg":"started"/)

  for (let slot = 1; slot <= CALLS; slot++) assert.match(await callAlone(rpc, token, slot), /"blockhash"/)
  const value = async (name: string) => {
    const line = (await (await fetch(metrics)).text()).split('\n').find((each) => each.startsWith(`${name} `))
    return Number(line?.split(' ').at(-1))
  }
  assert.equal(await value('sluice_bundle_cache_lookups_total{result="miss"}'), CALLS)
  // A thread publishes this gauge every second.
  let entries = 0
  const deadlineMs = performance.now() + PUBLISHED_MS
  while (performance.now() < deadlineMs) entries = Math.max(entries, await value('sluice_bundle_cache_entries'))
  assert(entries > 0 && entries <= ENTRIES_MAX, `${entries} entries`)
})

/** On a connection of its own, so that the kernel spreads the calls over the threads. */
function callAlone(url: string, token: string, slot: number): Promise<string> {
  const body = `{"jsonrpc":"2.0","id":1,"method":"getBlock","params":[${slot},{"commitment":"finalized"}]}`
  const headers = { 'content-type': 'application/json', 'x-token': token, 'content-length': body.length }
  return new Promise((resolve, reject) => {
    const agent = new Agent({ keepAlive: false })
    request(url, { method: 'POST', headers, agent }, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => (text += chunk.toString()))
      response.on('end', () => resolve(text))
    })
      .on('error', reject)
      .end(body)
  })
}
